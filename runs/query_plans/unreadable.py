"""The error of every format."""


class PlanUnreadableError(ValueError):
    """A text that is not a plan; the message says what was found."""
