"""An edition as a publication: the data file that the archive loads, with every repeat's figure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from django.utils.translation import gettext as _
from django.utils.translation import override

from runs.models import Campaign, Cell, Edition, Environment, HardwareProfile, Measurement, Run
from runs.scenarios import registry
from runs.selectors import configurations
from runs.selectors.archive import versions
from runs.selectors.campaigns import sentences
from runs.selectors.compare.series_cells import VERSION
from runs.selectors.observations import editions
from runs.selectors.observations.editions import Part

LANGUAGES = ("en", "ja")
MACHINE, SYSTEM, CONFIGURATION = "machine", "system", "configuration"


def of_edition(edition: Edition, *, publisher: str, today: str) -> str:
    """The text of the data file. Raises ValueError where nothing has finished."""
    observation = edition.observation
    found = [each for each in editions.parts(edition) if each.metric is not None]
    if not found:
        raise ValueError("nothing of this edition has finished")
    first = found[0].campaign
    run = _first_run(first)
    title = f"{observation.title} {edition.label}"
    content = {
        "source": {
            "slug": edition.published_as,
            "transcribed": today,
            "data_version": "1",
            "title": _both(title),
            "publisher": _both(publisher),
            "year": edition.created_at.year,
            "summary": _told(lambda: _summary(edition)),
        },
        "hardware": {MACHINE: _hardware(run.hardware)},
        "environments": {SYSTEM: _environment(run.environment)},
        "configurations": {CONFIGURATION: _configuration(first)},
        "campaigns": [_campaign(edition, each) for each in found],
    }
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=100)


def _campaign(edition: Edition, part: Part) -> dict[str, Any]:
    campaign, metric = part.campaign, part.metric
    assert metric is not None  # noqa: S101 - left out before
    theme = campaign.scenario.slug
    cells, values = _values(campaign, metric.pk)
    repeats = min((len(each) for each in values.values()), default=0)
    used = list(dict.fromkeys(cell.version for cell in cells if cell.pk in values))
    levels = {name: list(found) for name, found in campaign.factors.items() if name != VERSION}
    rows = [
        " | ".join(
            [cell.version, *(str(cell.levels[name]) for name in levels),
             *(_printed(each) for each in values[cell.pk][:repeats])]
        )
        for cell in cells
        if cell.pk in values
    ]  # fmt: skip
    return {
        "slug": edition.published_campaign(theme),
        "title": _told(lambda: f"{_(campaign.scenario.title)}: PostgreSQL {used[0]} – {used[-1]}"),
        "question": _told(lambda: _("How fast is each version?")),
        "scenario": theme,
        "table": theme,
        "repeats": repeats,
        "statistic": "median" if repeats > 1 else "single",
        "parameters": dict(campaign.parameters),
        "method": _told(lambda: _(campaign.scenario.description)),
        "topology": {"kind": "single", "name": _told(lambda: _("One machine"))},
        "nodes": [
            {
                "role": "database", "name": _both(edition.observation.server.name),
                "hardware": MACHINE, "environment": SYSTEM, "configuration": CONFIGURATION,
                "software": f"PostgreSQL {', '.join(used)}",
            }
        ],
        "tool": _tool(campaign),
        "versions": {each: each for each in used},
        "columns": [
            {"factor": VERSION, "label": _told(lambda: _("Version"))},
            *({"factor": name, "label": _factor(theme, name)} for name in levels),
            *(_repeat(number, metric.name) for number in range(1, repeats + 1)),
        ],
        "rows": "\n".join(rows) + "\n",
        "chart": _chart(metric.name, levels),
        "findings": [
            {**each, "by": "benchlab"} for each in _findings(campaign)
        ],
        "reproduce": {
            "scenario": theme, "parameters": dict(campaign.parameters), "levels": levels,
            "versions": used,
        },
    }  # fmt: skip


def _chart(metric: str, levels: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Lines over the first factor that varies; bars of the versions where none does."""
    over = next((name for name, found in levels.items() if len(found) > 1), None)
    if over is None:
        return {"kind": "bars", "metric": metric, "x": VERSION, "series": next(iter(levels))}
    return {"kind": "lines", "metric": metric, "x": over, "series": VERSION}


def _values(campaign: Campaign, metric: int) -> tuple[Sequence[Cell], Mapping[int, list[float]]]:
    """The cells by version and levels, and the value of each repeat that counts."""
    cells = sorted(
        campaign.cells.all(), key=lambda each: (versions.order(each.version), each.ordinal)
    )
    found: dict[int, list[float]] = defaultdict(list)
    counted = Measurement.objects.filter(
        run__campaign=campaign, run__state=Run.State.FINISHED, metric=metric
    )
    for cell, value in counted.order_by("run_id").values_list("run__cell", "value"):
        found[cell].append(value)
    return cells, found


def _findings(campaign: Campaign) -> list[dict[str, str]]:
    """The sentence of each step, in both languages."""
    told = []
    for language in LANGUAGES:
        with override(language):
            told.append(sentences.of_campaign(campaign))
    return [dict(zip(LANGUAGES, pair, strict=True)) for pair in zip(*told, strict=True)]


def _summary(edition: Edition) -> str:
    text = _("The line through the versions of PostgreSQL on %(server)s, measured by BenchLab.")
    return edition.conclusion or text % {"server": edition.observation.server.name}


def _hardware(profile: HardwareProfile | None) -> dict[str, Any]:
    if profile is None:
        return {"name": "–"}
    found = {
        "name": profile.name,
        "cpu_model": profile.cpu_model,
        "sockets": profile.sockets,
        "cores": profile.cores,
        "threads": profile.threads,
        # Exact: a rounded size would be another machine's.
        "memory": f"{profile.memory_bytes // 2**10} KiB" if profile.memory_bytes else "",
        "virtualization": profile.virtualization,
    }
    return {name: value for name, value in found.items() if value}


def _environment(found: Environment | None) -> dict[str, Any]:
    if found is None:
        return {"os_name": "–"}
    known = {"os_name": found.os_name, "kernel": found.kernel, "architecture": found.architecture}
    return {name: value for name, value in known.items() if value}


def _configuration(campaign: Campaign) -> dict[str, Any]:
    found = next(iter(configurations.contained(campaign)), None)
    return {
        "name": _both(found.name if found else CONFIGURATION),
        "settings": {name: str(value) for name, value in found.settings.items()} if found else {},
    }


def _tool(campaign: Campaign) -> dict[str, str]:
    run = _first_run(campaign)
    return {"name": run.tool_name, "version": run.tool_version}


def _first_run(campaign: Campaign) -> Run:
    found = campaign.runs.filter(state=Run.State.FINISHED).select_related("hardware", "environment")
    run = found.order_by("pk").first()
    if run is None:
        raise ValueError("nothing of this edition has finished")
    return run


def _repeat(number: int, metric: str) -> dict[str, Any]:
    label = _told(lambda: _("Run %(number)d") % {"number": number})
    return {"group": metric, "label": label, "metric": metric, "repeat": number}


def _factor(theme: str, name: str) -> dict[str, str]:
    titles = {each.name: each.title for each in registry.get(theme).factors}
    return _told(lambda: _(titles.get(name, name)))


def _printed(value: float) -> str:
    return f"{value:.7g}" if abs(value) < 1e7 else f"{value:.0f}"


def _both(text: str) -> dict[str, str]:
    return dict.fromkeys(LANGUAGES, text)


def _told(words: Any) -> dict[str, str]:
    found = {}
    for language in LANGUAGES:
        with override(language):
            found[language] = str(words())
    return found
