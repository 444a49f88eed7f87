"""An edition as a publication: the data file that the archive loads, with every repeat's figure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from django.utils.translation import gettext as _
from django.utils.translation import override

from runs.campaigns.selectors import sentences
from runs.cells.selectors import versions
from runs.cells.selectors.series_cells import VERSION
from runs.configurations.selectors import configurations
from runs.grouping import group_by_key
from runs.models import (
    Campaign,
    Edition,
    Environment,
    HardwareProfile,
    Measurement,
    Run,
)
from runs.models.observations import published_campaign
from runs.observations.selectors import doubts, editions, remarks
from runs.observations.selectors.editions import Part
from runs.scenarios import registry

T = TypeVar("T")
LANGUAGES = ("en", "ja")
MACHINE, SYSTEM, CONFIGURATION = "machine", "system", "configuration"


def write_document(edition: Edition, *, publisher: str, today: str) -> str:
    """The text of the data file. Raises ValueError where nothing has finished."""
    observation = edition.observation
    parts_with_metric = [
        part_of_edition
        for part_of_edition in editions.parts(edition)
        if part_of_edition.metric is not None
    ]
    if not parts_with_metric:
        raise ValueError("nothing of this edition has finished")
    first_campaign = parts_with_metric[0].campaign
    run = _first_run(first_campaign)
    title = f"{observation.title} {edition.label}"
    content = {
        "source": {
            "slug": edition.published_as,
            "transcribed": today,
            "data_version": "1",
            "title": _both(title),
            "publisher": _both(publisher),
            "year": edition.created_at.year,
            "summary": _translate_to_each(lambda: _summary(edition)),
        },
        "hardware": {MACHINE: _hardware(run.hardware)},
        "environments": {SYSTEM: _environment(run.environment)},
        "configurations": {CONFIGURATION: _configuration(first_campaign)},
        "campaigns": [
            _campaign(edition, part_of_edition) for part_of_edition in parts_with_metric
        ],
    }
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=100)


@dataclass(frozen=True)
class Printed:
    """A campaign's table: rows by version and level, a column a run; `levels` but the version's."""

    versions: Sequence[str]
    levels: Mapping[str, Sequence[Any]]
    repeats: int
    rows: Sequence[Sequence[str]]


def _campaign(edition: Edition, part_of_edition: Part) -> dict[str, Any]:
    campaign, metric = part_of_edition.campaign, part_of_edition.metric
    assert metric is not None  # noqa: S101 - left out before
    printed, theme = _printed(campaign, metric.pk), campaign.scenario.slug
    run, parameters = _first_run(campaign), dict(campaign.parameters)
    levels = {
        name: list(levels_of_factor)
        for name, levels_of_factor in printed.levels.items()
    }
    ends = f"{printed.versions[0]} – {printed.versions[-1]}"
    return {
        "slug": published_campaign(edition.observation.slug, edition.label, theme),
        "title": _translate_to_each(
            lambda: f"{_(campaign.scenario.title)}: PostgreSQL {ends}"
        ),
        "question": _translate_to_each(lambda: _("How fast is each version?")),
        "scenario": theme,
        "table": theme,
        "repeats": campaign.repeats,
        "statistic": "median" if campaign.repeats > 1 else "single",
        "parameters": parameters,
        "method": _translate_to_each(lambda: _(campaign.scenario.description)),
        "topology": {
            "kind": "single",
            "name": _translate_to_each(lambda: _("One machine")),
        },
        "nodes": [_node(edition, printed)],
        "tool": {"name": run.tool_name, "version": run.tool_version},
        "versions": {version: version for version in printed.versions},
        "columns": _columns(theme, metric.name, printed),
        "rows": "".join(f"{' | '.join(row)}\n" for row in printed.rows),
        "chart": _chart(metric.name, levels),
        "notes": _sentences_by_language(
            lambda: [*remarks.list_remarks(campaign), *doubts.notes(campaign)]
        ),
        "findings": [
            {**finding, "by": "benchlab"}
            for finding in _sentences_by_language(
                lambda: sentences.list_sentences(campaign)
            )
        ],
        "reproduce": {
            "scenario": theme,
            "parameters": parameters,
            "levels": levels,
            "versions": list(printed.versions),
        },
    }


def _node(edition: Edition, printed: Printed) -> dict[str, Any]:
    return {
        "role": "database",
        "name": _both(edition.observation.server.name),
        "hardware": MACHINE,
        "environment": SYSTEM,
        "configuration": CONFIGURATION,
        "software": f"PostgreSQL {', '.join(printed.versions)}",
    }


def _columns(theme: str, metric: str, printed: Printed) -> list[dict[str, Any]]:
    factors = [(VERSION, _translate_to_each(lambda: _("Version")))]
    factors += [(name, _factor(theme, name)) for name in printed.levels]
    return [
        *({"factor": name, "label": label} for name, label in factors),
        *(_repeat(number, metric) for number in range(1, printed.repeats + 1)),
    ]


def _chart(metric: str, levels: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Lines over the first factor that varies; bars of the versions where none does."""
    over = next(
        (
            name
            for name, levels_of_factor in levels.items()
            if len(levels_of_factor) > 1
        ),
        None,
    )
    if over is None:
        return {
            "kind": "bars",
            "metric": metric,
            "x": VERSION,
            "series": next(iter(levels)),
        }
    return {"kind": "lines", "metric": metric, "x": over, "series": VERSION}


def _printed(campaign: Campaign, metric: int) -> Printed:
    """The value of each run that counts; a cell of which some do not has fewer."""
    counted = Measurement.objects.filter(
        run__campaign=campaign, run__state=Run.State.FINISHED, metric=metric
    )
    values = group_by_key(counted.order_by("run_id").values_list("run__cell", "value"))
    measured = (cell for cell in campaign.cells.all() if cell.pk in values)
    cells = sorted(
        measured, key=lambda cell: (versions.order(cell.version), cell.ordinal)
    )
    repeats = max(map(len, values.values()), default=0)
    levels = {
        name: factor_levels
        for name, factor_levels in campaign.factors.items()
        if name != VERSION
    }
    rows = [
        [
            cell.version,
            *(str(cell.levels[name]) for name in levels),
            *map(_number, values[cell.pk]),
            *(["-"] * (repeats - len(values[cell.pk]))),
        ]
        for cell in cells
    ]
    return Printed(
        list(dict.fromkeys(cell.version for cell in cells)), levels, repeats, rows
    )


def _sentences_by_language(words: Callable[[], list[str]]) -> list[dict[str, str]]:
    """Each of some sentences in both languages."""
    texts = _translate_to_each(words)
    return [
        dict(zip(texts, sentence_pair, strict=True))
        for sentence_pair in zip(*texts.values(), strict=True)
    ]


def _summary(edition: Edition) -> str:
    text = _(
        "The line through the versions of PostgreSQL on %(server)s, measured by BenchLab."
    )
    return edition.conclusion or text % {"server": edition.observation.server.name}


def _hardware(profile: HardwareProfile | None) -> dict[str, Any]:
    if profile is None:
        return {"name": "–"}
    facts_of_profile = {
        "name": profile.name,
        "cpu_model": profile.cpu_model,
        "sockets": profile.sockets,
        "cores": profile.cores,
        "threads": profile.threads,
        # Exact: a rounded size would be another machine's.
        "memory": f"{profile.memory_bytes // 2**10} KiB"
        if profile.memory_bytes
        else "",
        "virtualization": profile.virtualization,
    }
    return {name: value for name, value in facts_of_profile.items() if value}


def _environment(environment: Environment | None) -> dict[str, Any]:
    if environment is None:
        return {"os_name": "–"}
    facts_of_system = {
        "os_name": environment.os_name,
        "kernel": environment.kernel,
        "architecture": environment.architecture,
    }
    return {name: value for name, value in facts_of_system.items() if value}


def _configuration(campaign: Campaign) -> dict[str, Any]:
    contained = next(iter(configurations.contained(campaign)), None)
    return {
        "name": _both(contained.name if contained else CONFIGURATION),
        "settings": {name: str(value) for name, value in contained.settings.items()}
        if contained
        else {},
    }


def _first_run(campaign: Campaign) -> Run:
    finished_runs = campaign.runs.filter(state=Run.State.FINISHED).select_related(
        "hardware", "environment"
    )
    run = finished_runs.order_by("pk").first()
    if run is None:
        raise ValueError("nothing of this edition has finished")
    return run


def _repeat(number: int, metric: str) -> dict[str, Any]:
    label = _translate_to_each(lambda: _("Run %(number)d") % {"number": number})
    return {"group": metric, "label": label, "metric": metric, "repeat": number}


def _factor(theme: str, name: str) -> dict[str, str]:
    titles = {factor.name: factor.title for factor in registry.get(theme).factors}
    return _translate_to_each(lambda: _(titles.get(name, name)))


def _number(value: float) -> str:
    return f"{value:.7g}" if abs(value) < 1e7 else f"{value:.0f}"


def _both(text: str) -> dict[str, str]:
    return dict.fromkeys(LANGUAGES, text)


def _translate_to_each(words: Callable[[], T]) -> dict[str, T]:
    words_of = {}
    for language in LANGUAGES:
        with override(language):
            words_of[language] = words()
    return words_of
