"""Reads the explanation of a difference between two cells; `selectors.answers` says it in words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.inference import Inference
from runs.analysis.why import parts, plan_reads, suspects
from runs.analysis.why.counters import Moved
from runs.analysis.why.parts import Difference
from runs.analysis.why.proof import GIVEN, LOOKS
from runs.analysis.why.suspects import Side, Suspect
from runs.cells.selectors.series_cells import CONFIGURATION, SUBJECTS, level_text
from runs.compare.selectors.judge import judging
from runs.models import Ablation, Campaign, Cell, Run
from runs.models.campaigns import Origin
from runs.postgresql_settings.catalogue import all_names
from runs.scenarios import registry
from runs.why.selectors import ablations
from runs.why.selectors.ablations import Answers
from runs.why.selectors.explanation import Explanation, Length
from runs.why.services import sides
from runs.why.services.recorded import recorded

MOST_RECORDINGS = 3
# The level that names a user's own script.
SCRIPT = "script"


def explain(a: int, b: int, *, reader: Reader) -> Explanation:
    """Why cell `b` differs from cell `a`, by their keys. Raises Cell.DoesNotExist.

    At most twenty-two queries, and a file for each of the newest runs.
    """
    cells = _cells(a, b, reader)
    obstacle = _obstacle(cells[a], cells[b])
    # Of other loads the parts say where the time goes, though nothing can be put back.
    has_records = obstacle in {"", "other_machine", "other_load"}
    side_of = sides.read_sides([cells[a], cells[b]]) if has_records else {}
    of_a, of_b = side_of.get(a), side_of.get(b)
    difference = None
    if of_a and of_b and of_a.accounts and of_b.accounts:
        difference = parts.compare(
            *(list(map(parts.split, s.accounts)) for s in (of_a, of_b))
        )
    elif not obstacle:
        has_runs = all(
            side is not None and side.number_of_runs for side in (of_a, of_b)
        )
        obstacle = "no_evidence" if has_runs else "no_runs"
    differences = _suspects(of_a, of_b, difference)
    earlier = ablations.list_ablations(a, b, to=reader)
    ablation = next((ablation for ablation in earlier if ablation.suspects), None)
    recordings = [ablation for ablation in earlier if not ablation.suspects][
        :MOST_RECORDINGS
    ]
    answers = ablations.answers(ablation) if ablation else None
    tried = [Suspect.from_json(row) for row in ablation.suspects] if ablation else []
    # What no run has answered was not tried; what could not be put back was.
    has_answer = answers is not None and bool(
        answers.time or answers.cpu or answers.unchanged
    )
    is_live = ablation is not None and ablation.campaign.state in Campaign.LIVE
    proposed = _proposed(differences, tried if has_answer or is_live else (), answers)
    arms = _arms(a, b, recordings)
    labels = _labels(cells[a], cells[b])
    return Explanation(
        a=cells[a],
        b=cells[b],
        labels=labels,
        obstacle=obstacle,
        difference=difference,
        in_turn=_compare_slices(cells[a], cells[b]) if difference else None,
        suspects=tuple(differences),
        tried=tuple(tried),
        kinds=_kinds(of_a, of_b),
        proposed=tuple(suspect.key for suspect in proposed),
        plans=plan_reads.compare(of_a, of_b) if of_a and of_b else None,
        plans_missing=_plans_missing(of_a, of_b),
        moved=tuple(_moved(of_a, of_b)),
        ablation=ablation,
        answers=answers,
        length=_length(cells[a], cells[b], proposed) if proposed else None,
        recording=next(iter(recordings), None),
        recorded=recorded(*arms, (cells[a], cells[b]), difference),
        silent=_silent(labels, (of_a, of_b), is_without_runs=obstacle == "no_runs"),
        days_apart=_days_apart(of_a, of_b),
    )


def _silent(
    labels: tuple[str, str],
    compared_sides: tuple[Side | None, Side | None],
    *,
    is_without_runs: bool,
) -> tuple[str, ...]:
    """The labels of sides without a record, or without a run that has ended."""
    return tuple(
        label
        for label, side in zip(labels, compared_sides, strict=True)
        if side is not None
        and not (side.number_of_runs if is_without_runs else side.accounts)
    )


def _days_apart(a: Side | None, b: Side | None) -> int:
    """How many days lie between the last run of one side and the first of the other."""
    if a is None or b is None or a.measured is None or b.measured is None:
        return 0
    gap = max(a.measured[0] - b.measured[1], b.measured[0] - a.measured[1])
    return max(gap.days, 0)


def _arms(a: int, b: int, recordings: Sequence[Ablation]) -> tuple[set[int], set[int]]:
    """The cells of both sides, with those of the campaigns that recorded from here."""
    arms = {"A": {a}, "B": {b}}
    campaigns = [ablation.campaign_id for ablation in recordings]
    cells = (
        Cell.objects.filter(campaign__in=campaigns)
        if campaigns
        else Cell.objects.none()
    )
    for key, arm in cells.values_list("pk", f"levels__{ablations.ARM}"):
        arms[str(arm)[0]].add(key)
    return arms["A"], arms["B"]


def _cells(a: int, b: int, reader: Reader) -> dict[int, Cell]:
    visible_cells = projects.visible(Cell.objects.filter(pk__in={a, b}), to=reader)
    related = visible_cells.select_related(
        "campaign__scenario", "campaign__topology", "campaign__project"
    )
    with_programs = related.select_related("installation", "workload_version")
    cells = {cell.pk: cell for cell in with_programs}
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


def _compare_slices(a: Cell, b: Cell) -> Inference | None:
    """What the campaign says of the time of both, where their slices took turns; else None.

    At most seven queries.
    """
    if a.campaign_id != b.campaign_id or not a.campaign.slice_seconds:
        return None
    name = registry.get(a.campaign.scenario.slug).primary_metric
    judge = judging.make_judge([a.pk, b.pk], [name])
    metrics = judge.metrics_of.get(a.campaign_id, ())
    metric = next((metric for metric in metrics if metric.name == name), None)
    if metric is None:
        return None
    (inference,) = judge.judge([(a.pk, b.pk)], metric)
    if inference.low is None or inference.high is None:
        return None
    return inference if metric.direction == "lower" else _invert_rate(inference)


def _invert_rate(of_rate: Inference) -> Inference:
    """The same of the time of a transaction, where the rate was compared."""
    ratio, low, high = of_rate.ratio, of_rate.low, of_rate.high
    return replace(
        of_rate,
        ratio=1 / ratio if ratio else None,
        low=1 / high if high else None,
        high=1 / low if low else None,
    )


def _load(cell: Cell) -> tuple[int, Mapping[str, str], Mapping[str, Any], object]:
    """What is measured, whatever PostgreSQL, settings and data it is measured with.

    Of an own script what it sends, and not how it sets up its data: those are a difference.
    """
    apart = {*SUBJECTS, CONFIGURATION, ablations.ARM, *all_names()}
    script = None
    if cell.workload_version is not None:
        apart.add(SCRIPT)
        script = (cell.workload_version.scripts, cell.workload_version.variables)
    levels = {
        name: level_text(level)
        for name, level in cell.levels.items()
        if name not in apart
    }
    return cell.campaign.scenario_id, levels, cell.campaign.parameters, script


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


def _suspects(
    a: Side | None, b: Side | None, difference: Difference | None
) -> list[Suspect]:
    if a is None or b is None or not (a.settings and b.settings):
        return []
    return suspects.find(a, b, difference)


def _moved(a: Side | None, b: Side | None) -> Sequence[Moved]:
    if a is None or b is None or not (a.accounts and b.accounts):
        return ()
    return suspects.facts_of(a, b).moved


def _plans_missing(*sides_compared: Side | None) -> str:
    """The first reason that a run recorded."""
    codes = [
        account.plans_missing
        for side in sides_compared
        if side is not None
        for account in side.accounts
    ]
    return next((code for code in codes if code), "")


def _kinds(a: Side | None, b: Side | None) -> frozenset[str]:
    """The kinds of differences that both sides recorded."""
    if a is None or b is None:
        return frozenset()
    settings = {"setting"} if a.settings and b.settings else set()
    return frozenset(settings | (a.further.keys() & b.further.keys()))


def _proposed(
    differences: Sequence[Suspect], tried: Sequence[Suspect], answers: Answers | None
) -> Sequence[Suspect]:
    """What an ablation would put back next: of halves the members of those that explain something,
    else what was not tried yet, else all. Of data single objects come before their set-up."""
    candidates = [suspect for suspect in differences if suspect.is_candidate]
    groups = [suspect for suspect in tried if suspect.kind == "group"]
    if groups and answers is not None:
        explaining = {
            share.name.removeprefix(GIVEN)
            for proof in (answers.time, answers.cpu)
            if proof is not None
            for share in (*proof.explained, *proof.sufficient)
        }
        members = {
            key for group in groups if group.key in explaining for key in group.members
        }
        if members:
            return [suspect for suspect in candidates if suspect.key in members]
    keys = {suspect.key for suspect in tried} | {
        key for group in groups for key in group.members
    }
    untried = [suspect for suspect in candidates if suspect.key not in keys]
    return _objects_first(untried) or candidates


def _objects_first(candidates: Sequence[Suspect]) -> Sequence[Suspect]:
    """Without the set-up of the data where objects that it makes can be put back alone."""
    if any(suspect.is_of_data for suspect in candidates):
        return [suspect for suspect in candidates if suspect.kind != "setup"]
    return candidates


def _length(a: Cell, b: Cell, proposed: Sequence[Suspect]) -> Length | None:
    """By the mean time that the runs of both cells took, clusters included."""
    runs = Run.objects.filter(Run.MEASURED, cell__in=(a, b))
    times = [
        (end - begin).total_seconds()
        for begin, end in runs.values_list("started_at", "finished_at")
        if begin is not None and end is not None
    ]
    if not times:
        return None
    arms = suspects.number_of_arms(suspects.plan_trials(proposed))
    mean = arms * sum(times) / len(times)
    return Length(arms, (LOOKS[0] * mean, LOOKS[1] * mean))
