"""Why a foreign text was not read: it was not understood, or took more than it may."""

from dataclasses import dataclass, field

from runs.wording import Marked, Wording, put, wording_of


@dataclass(frozen=True)
class Refusal:
    """What a reader said of a text that it does not understand (`runs.wording`).

    `code` is stable, `remedy` says what to do; both are empty where the reader has none.
    """

    wording: Wording
    remedy: Wording = field(default_factory=dict)
    code: str = ""


class NotUnderstood(ValueError):
    """The text is none that its reader knows."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(put(refusal.wording))


class TooMuch(Exception):
    """Reading took more than it may; the process that read it is gone.

    `code` is `reading_too_slow`, `reading_too_large` or `reading_busy`; the last of them may go
    better the next time. `wording` says what was exceeded (`runs.wording`).
    """

    def __init__(self, code: str, text: Marked, **values: object) -> None:
        self.code = code
        self.wording = wording_of(text, values)
        super().__init__(put(self.wording))


def refusal_of(error: Exception) -> Refusal:
    """What an error of a reader says. One without a wording is quoted."""
    quoted = wording_of(Marked("%(error)s"), {"error": str(error)})
    return Refusal(
        wording=getattr(error, "wording", quoted),
        remedy=getattr(error, "remedy", {}),
        code=getattr(error, "code", ""),
    )
