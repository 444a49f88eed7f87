"""Why the lab cannot have a version, worded for the person who asked for it."""


class LabError(Exception):
    """Says what was found and what to do; shown without a traceback."""


class RepositoryAway(LabError):
    """Nothing answers at the repository's address: asking for more would only take time."""
