"""What is known of why cells of a campaign differ. Subjects above that find it out join here."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from runs.models import Campaign, Cell
from runs.shared.hooks import Hook


@dataclass(frozen=True)
class TriedRow:
    """A suspect that an ablation puts back, and what that says of time and of processor time."""

    name: str
    a: str
    b: str
    time: str
    cpu: str
    is_proven: bool


@dataclass(frozen=True)
class AblationAnswer:
    """What an ablation says, in the language of its reader.

    `sentences` has those of time, then those of processor time, each with its title. `notes` are
    the figures that they rest on, and what is missing.
    """

    sentences: tuple[str, ...] = ()
    rows: tuple[TriedRow, ...] = ()
    notes: tuple[str, ...] = ()
    is_explained: bool = False


@dataclass(frozen=True)
class Explanation:
    """Why `head` differs from `base`; `title` is that of the campaign that tried it.

    Without sentences somebody asked, and there is no answer yet.
    """

    base: Cell
    head: Cell
    title: str
    answer: AblationAnswer


EXPLAINERS: Hook[Callable[[Campaign], Iterable[Explanation]]] = Hook()


def list_explanations(campaign: Campaign) -> list[Explanation]:
    """Of each pair of its cells that somebody asked about, or of the pair that it was made for."""
    return [explanation for explain in EXPLAINERS for explanation in explain(campaign)]
