"""The explanation of a difference between two cells: one value for page, API and Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.why import parts, suspects
from runs.analysis.why.counters import Moved
from runs.analysis.why.parts import Difference
from runs.analysis.why.proof import LOOKS, Proof
from runs.analysis.why.suspects import Side, Suspect
from runs.cells.selectors.series_cells import CONFIGURATION, SUBJECTS, level_text
from runs.models import Ablation, Cell, Run
from runs.models.campaigns import Origin
from runs.postgresql_settings.catalogue import all_names
from runs.why.selectors import ablations
from runs.why.selectors.ablations import Answers
from runs.why.services import sides
from runs.why.services.recorded import Recorded, recorded

MOST_RECORDINGS = 3


@dataclass(frozen=True)
class Length:
    """What an ablation takes: arms, and seconds up to both looks."""

    arms: int
    seconds: tuple[float, float]


@dataclass(frozen=True)
class Explanation:
    """Why `b` differs from `a`.

    `obstacle` is the code of why nothing can be told; empty if something can. `difference` is None
    without evidence, `answers` before an ablation. `suspects` are those of the ablation as they
    were when it was queued, followed by what was left out. `length` is that of the ablation that
    could be queued; None if nothing can be tried. `recording` is the campaign that was queued from
    here for what is `recorded` by runs of their own.
    """

    a: Cell
    b: Cell
    labels: tuple[str, str]
    obstacle: str
    difference: Difference | None
    suspects: tuple[Suspect, ...]
    moved: tuple[Moved, ...]
    ablation: Ablation | None
    answers: Answers | None
    length: Length | None
    recording: Ablation | None
    recorded: Recorded

    @property
    def proof(self) -> Proof | None:
        """The proof of what is compared: the time, or processor time on a crowded machine."""
        if self.answers is None:
            return None
        time_proof, second = self.answers.time, self.answers.cpu
        if self.is_of_cpu:
            time_proof, second = second, time_proof
        return time_proof or second

    @property
    def is_of_cpu(self) -> bool:
        """Whether processor time is compared, since the machine was not the experiment's alone."""
        is_crowded = self.difference is not None and self.difference.is_crowded
        has_no_time = self.answers is not None and self.answers.time is None
        return is_crowded or (has_no_time and self.answers.cpu is not None)  # type: ignore[union-attr]

    @property
    def candidates(self) -> tuple[Suspect, ...]:
        """What an ablation can try, or has tried."""
        return tuple(suspect for suspect in self.suspects if suspect.is_candidate)


def explain(a: int, b: int, *, reader: Reader) -> Explanation:
    """Why cell `b` differs from cell `a`, by their keys. Raises Cell.DoesNotExist.

    At most fifteen queries, and a file for each of the newest runs.
    """
    cells = _cells(a, b, reader)
    obstacle = _obstacle(cells[a], cells[b])
    # Of other loads the parts say where the time goes, though nothing can be put back.
    has_records = obstacle in {"", "other_machine", "other_load"}
    side_of = sides.of_cells([cells[a], cells[b]]) if has_records else {}
    of_a, of_b = side_of.get(a), side_of.get(b)
    difference = None
    if of_a and of_b and of_a.accounts and of_b.accounts:
        difference = parts.compare(*(list(map(parts.split, s.accounts)) for s in (of_a, of_b)))
    elif not obstacle:
        obstacle = "no_evidence"
    suspects = _suspects(of_a, of_b, difference)
    earlier = ablations.of_pair(a, b, to=reader)
    ablation = next((ablation for ablation in earlier if ablation.suspects), None)
    recordings = [ablation for ablation in earlier if not ablation.suspects][:MOST_RECORDINGS]
    if ablation is not None:
        suspects = _as_queued(ablation, suspects)
    candidates = [suspect for suspect in suspects if suspect.is_candidate]
    arms = _arms(a, b, recordings)
    return Explanation(
        a=cells[a],
        b=cells[b],
        labels=_labels(cells[a], cells[b]),
        obstacle=obstacle,
        difference=difference,
        suspects=tuple(suspects),
        moved=tuple(_moved(of_a, of_b)),
        ablation=ablation,
        answers=ablations.answers(ablation) if ablation else None,
        length=_length(cells[a], cells[b], len(candidates)) if candidates else None,
        recording=next(iter(recordings), None),
        recorded=recorded(*arms, (cells[a], cells[b]), difference),
    )


def of_campaign(campaign: int, *, reader: Reader) -> list[Explanation]:
    """The differences between cells of a campaign that an ablation has explained, or tried to."""
    tried = sorted(
        ablations.about(campaign),
        key=lambda ablation: (ablation.base.ordinal, ablation.head.ordinal),
    )
    explanations = (
        explain(ablation.base_id, ablation.head_id, reader=reader) for ablation in tried
    )
    return [explanation for explanation in explanations if explanation.proof is not None]


def _arms(a: int, b: int, recordings: Sequence[Ablation]) -> tuple[set[int], set[int]]:
    """The cells of both sides, with those of the campaigns that recorded from here."""
    arms = {"A": {a}, "B": {b}}
    campaigns = [ablation.campaign_id for ablation in recordings]
    cells = Cell.objects.filter(campaign__in=campaigns) if campaigns else Cell.objects.none()
    for key, arm in cells.values_list("pk", f"levels__{ablations.ARM}"):
        arms[str(arm)[0]].add(key)
    return arms["A"], arms["B"]


def _cells(a: int, b: int, reader: Reader) -> dict[int, Cell]:
    visible_cells = projects.visible(Cell.objects.filter(pk__in={a, b}), to=reader)
    related = visible_cells.select_related(
        "campaign__scenario", "campaign__topology", "campaign__project"
    )
    cells = {cell.pk: cell for cell in related.select_related("installation")}
    if a not in cells or b not in cells:
        raise Cell.DoesNotExist
    return cells


def _obstacle(a: Cell, b: Cell) -> str:
    """The code of why the difference cannot be explained; the first that holds is told."""
    origins = {a.campaign.origin, b.campaign.origin}
    servers = {cell.installation and cell.installation.server_id for cell in (a, b)}
    holds_by_code = {
        "same_cell": a == b,
        "published": Origin.PUBLISHED in origins,
        "uploaded": Origin.UPLOADED in origins,
        "other_load": _load(a) != _load(b),
        "other_machine": len(servers) > 1,
    }
    return next((code for code, holds in holds_by_code.items() if holds), "")


def _load(cell: Cell) -> tuple[int, Mapping[str, str], Mapping[str, Any]]:
    """What is measured, whatever PostgreSQL and settings it is measured with."""
    apart = {*SUBJECTS, CONFIGURATION, ablations.ARM, *all_names()}
    levels = {name: level_text(level) for name, level in cell.levels.items() if name not in apart}
    return cell.campaign.scenario_id, levels, cell.campaign.parameters


def _labels(a: Cell, b: Cell) -> tuple[str, str]:
    names = [
        name
        for name in b.levels
        if level_text(a.levels.get(name, "")) != level_text(b.levels[name])
    ]
    if not names:
        return a.campaign.title, b.campaign.title
    side_labels = [
        " · ".join(
            level_text(cell.levels.get(name, ""))
            if name == "version"
            else f"{name} {level_text(cell.levels.get(name, ''))}"
            for name in names
        )
        for cell in (a, b)
    ]
    return side_labels[0], side_labels[1]


def _suspects(a: Side | None, b: Side | None, difference: Difference | None) -> list[Suspect]:
    if a is None or b is None or not (a.settings and b.settings):
        return []
    return suspects.find(a, b, difference)


def _moved(a: Side | None, b: Side | None) -> Sequence[Moved]:
    if a is None or b is None or not (a.accounts and b.accounts):
        return ()
    return suspects.facts_of(a, b).moved


def _as_queued(ablation: Ablation, suspects_now: Sequence[Suspect]) -> list[Suspect]:
    """The suspects that it tries, and the others as they are now, none of them to be tried."""
    tried = [
        Suspect(
            **{**suspect, "evidence": tuple(suspect["evidence"]), "parts": tuple(suspect["parts"])}
        )
        for suspect in ablation.suspects
    ]
    names = {suspect.name for suspect in tried}
    return tried + [
        replace(suspect, reason="rank") if suspect.is_candidate else suspect
        for suspect in suspects_now
        if suspect.name not in names
    ]


def _length(a: Cell, b: Cell, number: int) -> Length | None:
    """By the mean time that the runs of both cells took, clusters included."""
    runs = Run.objects.filter(sides.MEASURED, cell__in=(a, b))
    times = [
        (end - begin).total_seconds()
        for begin, end in runs.values_list("started_at", "finished_at")
        if begin is not None and end is not None
    ]
    if not times:
        return None
    # A, B, B again, each suspect, and all of them where there are several.
    arms = 3 + number + (number > 1)
    mean = arms * sum(times) / len(times)
    return Length(arms, (LOOKS[0] * mean, LOOKS[1] * mean))
