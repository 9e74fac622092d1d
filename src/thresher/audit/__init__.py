"""Attacks that try to prove a claimed epsilon false, with a confidence bound.

``audit`` plays a guessing game on two neighbouring data sets thousands of times, ``one_run`` puts many canaries
into a single run, and ``membership`` and ``attribute`` attack models the way an outsider would.
"""

from thresher.audit import pairs
from thresher.audit.attributes import AttributeResult, attribute
from thresher.audit.cases import Claim
from thresher.audit.game import AuditResult, Suspect, audit
from thresher.audit.guessing import Event
from thresher.audit.membership import MembershipResult, membership
from thresher.audit.one_run import one_run
from thresher.audit.pairs import Pair

__all__ = [
    "AttributeResult",
    "AuditResult",
    "Claim",
    "Event",
    "MembershipResult",
    "Pair",
    "Suspect",
    "attribute",
    "audit",
    "membership",
    "one_run",
    "pairs",
]
