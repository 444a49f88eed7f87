"""What stops an instance from starting, in words for the person who started it."""


class StartError(Exception):
    """Says what was found and what to do; shown without a traceback."""
