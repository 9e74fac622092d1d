"""What vaults, sources of noise and ledgers keep to themselves, for the tests that must look: each private name once.

Where an answer alone would do, tests ask for the answer.
"""


def engine_of(vault):
    """The clipped rows."""
    return vault._engine


def targets_of(vault):
    return vault._targets


def clipped_residuals_of(vault, limits):
    return vault._clipped_residuals(limits)


def cache_of(vault):
    """What was computed once for several questions."""
    return vault._cache


def shares_of(vault):
    """Of people with several rows, how much each row counts."""
    return vault._shares


def set_shares(vault, shares):
    vault._shares = shares


def noise_of(vault):
    return vault._noise


def drawn_batch(vault, release):
    return vault._draw_batch(release)


def precision_of(vault, *question):
    return vault._precision(*question)


def examples_of(vault):
    """The rows of a network's vault."""
    return vault._examples


def walk_of(follower):
    """What the compiled walk knows of the gradient."""
    return follower._gradient._walk


def generator_of(source):
    """The stream that a source of noise reads."""
    return source._generator


def set_generator(source, generator):
    source._generator = generator


def store_of(ledger):
    """What the account book is kept in."""
    return ledger._store


def address_of(ledger):
    """Where it is, password included."""
    return ledger._store._address


def plan_of(server):
    """What a server of the local model asks."""
    return server._plan


def survey_of(server):
    """The sums of the round that is open, and of those before."""
    return server._survey


def identifiers_of(server):
    """Of the reports that were taken in."""
    return server._ids


def point_of(server):
    """Where the iteration is."""
    return server._theta
