"""Errors that prevent an instance from starting, worded for the person who started it."""


class StartError(Exception):
    """Says what was found and what to do; shown without a traceback."""


class StopError(Exception):
    """A part of the instance cannot be stopped; the message says what to do."""
