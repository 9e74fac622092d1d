"""A sum of whole-number vectors of which nobody sees a part: double masking after Bonawitz et al. (CCS 2017).

Five stages, driven by the server, which carries all messages. To the parties (>) and back (<), by party:

    ADVERTISE  > nothing                     < two fresh public keys, signed: one for masks, one for envelopes
    SHARE      > everybody's keys            < an envelope for each party: shares of my mask key and of my seed
    MASK       > the envelopes for me        < my vector + mask(my seed) +- a mask for each other party, mod 2^64
    CONFIRM    > who sent a vector           < my signature under this list and everybody's keys
    UNMASK     > everybody's signatures      < a share of the seed of each who sent a vector, of the mask key of others

The masks between two parties cancel in the sum. With a quorum of shares the server removes the rest: the masks of
seeds, and the masks towards parties who left before they sent their vector. Keys live for one round.

Who is safe from whom. A party trusts its own machine, the public identities, its ``Group``. The server and up to
``colluding`` parties may put together all they see, and may break the rules: send forged, old or differing messages,
or none. They learn the sum of at least ``honest`` honest vectors, or nothing. For, whatever the others do:

* keys are signed, so envelopes open for their party only, and the seed or the mask key of an honest party takes a
  quorum of shares, of which the colluding hold fewer;
* an honest party gives shares once, of one kind for each party, for one list of survivors, which has a quorum and was
  signed by a quorum together with the keys; two lists, or both kinds of one party, need more honest parties than there
  are (see ``Group``);
* so any two honest survivors keep their common mask, and only the sum of all of them is free of masks.

What is *not* promised: a right sum. A party may send any vector; it, or the server, can stop a round or spoil its sum.
The sum itself is not private: vectors must bring their noise along (``thresher.federated.skellam_aggregation``).
The server sees who takes part and when; messages should travel over TLS, which also tells it who the senders are.
"""

from thresher.federated.masking_party import MaskingParty, Memory
from thresher.federated.masking_server import MaskingServer, RoundAborted

__all__ = ["MaskingParty", "MaskingServer", "Memory", "RoundAborted"]
