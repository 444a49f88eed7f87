"""The one exception of services that a person can mend."""


class ServiceError(Exception):
    """What was asked cannot be done: a stable code, what was found, and what to do about it.

    `field` names the input that is at fault, where it is a single one.
    """

    def __init__(self, code: str, message: str, *, remedy: str = "", field: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.field = field
