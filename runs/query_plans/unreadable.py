"""The error of every format."""


class PlanUnreadableError(ValueError):
    """A text that is no plan; the message says what stands there."""
