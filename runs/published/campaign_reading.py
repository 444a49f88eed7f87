"""Reads one campaign of a data file, with its columns, rows and rules."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runs.published.document import ArtifactEntry, CampaignEntry, Column, Finding, Rule, SameAs
from runs.published.errors import PublishedFileError
from runs.published.fields import Fields, as_text, typed

TOPOLOGIES = ("single", "client", "streaming", "logical", "fdw", "sharded", "pooled")


def read_campaign(value: Any) -> CampaignEntry:
    """A campaign. Raises PublishedFileError, which names it."""
    slug = str(value.get("slug", "?")) if isinstance(value, Mapping) else "?"
    fields = Fields(value, "it", campaign=slug)
    columns = tuple(_column(each, slug) for each in fields.items("columns"))
    topology = Fields(fields.raw("topology", {}), "topology", campaign=slug)
    tool = Fields(fields.raw("tool", {}), "tool", campaign=slug)
    more = {
        "topology_kind": topology.text("kind", choices=TOPOLOGIES),
        "topology_name": topology.pair("name"),
        "tool_name": tool.text("name"),
        "tool_version": tool.text("version"),
        "columns": columns,
        "grid": _grid(fields.text("rows"), len(columns), slug),
        "derived": {
            metric: _rule(rule, slug) for metric, rule in fields.mapping("derived").items()
        },
        "same_as": _same_as(fields),
        "chart": typed(fields.raw("chart", {})),
        "findings": tuple(_finding(each, slug) for each in fields.items("findings")),
        "artifacts": _artifacts(fields, slug),
    }
    for each in (topology, tool):
        each.close()
    return _checked(fields.entry(CampaignEntry, **more), fields)


def _checked(made: CampaignEntry, fields: Fields) -> CampaignEntry:
    """The entry. Raises PublishedFileError where it contradicts itself."""
    if made.repeats == 1 and made.statistic is None:
        made = replace(made, statistic="single")
    if made.statistic and not made.repeats:
        raise fields.fault("has a statistic and no repeats: leave out what is not printed")
    if made.has_figures != bool(made.grid):
        raise fields.fault("needs rows, or has_figures: false where only a picture has the figures")
    return made


def _column(value: Any, slug: str) -> Column:
    fields = Fields(value, "a column", campaign=slug)
    factor = fields.text("factor")
    values = {
        word: typed(level) if isinstance(level, Mapping) else typed(level, name=factor)
        for word, level in fields.mapping("values").items()
    }
    made = fields.entry(
        Column,
        is_text=fields.flag("text"),
        values=values,
        units={unit: float(size) for unit, size in fields.mapping("units").items()},
        same_as=_same_as(fields),
        described=_described(fields, values),
    )
    if made.factor and (made.metric or made.is_text):
        raise fields.fault("is a factor and something else")
    return made


def _described(fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the page needs about a column; words that mean several levels are left out."""
    kept = {
        "label": fields.raw("label", ""),
        "group": fields.raw("group", ""),
        "factor": fields.raw("factor"),
        "metric": fields.raw("metric"),
        "levels": fields.levels("levels"),
        "label_of": fields.mapping("label_of"),
        "values": {
            word: str(level) for word, level in values.items() if not isinstance(level, Mapping)
        },
        "repeat": fields.number("repeat"),
    }
    return {name: value for name, value in kept.items() if value not in (None, {}, "")}


def _grid(text: str, width: int, slug: str) -> tuple[tuple[str, ...], ...]:
    rows = []
    for place, line in enumerate(line for line in text.splitlines() if line.strip()):
        cells = tuple(cell.strip() for cell in line.split("|"))
        if len(cells) != width:
            message = f"has {len(cells)} cells, the table {width} columns: “{line.strip()}”."
            raise PublishedFileError(message, campaign=slug, row=place, words=line.strip())
        rows.append(cells)
    return tuple(rows)


def _rule(value: Any, slug: str) -> Rule:
    fields = Fields(value, "a derived metric", campaign=slug)
    over = {name: tuple(levels) for name, levels in fields.levels("over").items()}
    forms = ("factor", "percent", "inverse", "loss", "less")
    form: Any = fields.text("as", choices=forms) or "factor"
    to, same_as = fields.levels("to"), _same_as(fields)
    operands = {kind: fields.text(kind) for kind in ("ratio", "median", "sum")}
    fields.close()
    if same_as:
        return Rule("same_as", same_as=same_as[0])
    for kind in ("ratio", "median", "sum"):
        if operands[kind]:
            return Rule(kind, operands[kind], to=to, form=form, over=over)
    raise fields.fault("needs ratio, median, sum or same_as")


def _same_as(fields: Fields) -> tuple[SameAs, ...]:
    """One, or a list of them."""
    found = fields.raw("same_as", [])
    listed = found if isinstance(found, list) else [found]
    return tuple(Fields(each, "same_as", campaign=fields.campaign).entry(SameAs) for each in listed)


def _finding(value: Any, slug: str) -> Finding:
    fields = Fields(value, "a finding", campaign=slug)
    text = {"en": fields.text("en"), "ja": fields.text("ja")}
    made = fields.entry(Finding, text=as_text(text, "a finding", campaign=slug))
    has_place = bool(made.section or made.quote)
    if (made.by == "benchlab") == has_place or bool(made.section) != bool(made.quote):
        raise fields.fault(
            f"(“{made.text.en}”) needs the “section” and the “quote” in which the publication "
            "says it, or “by: benchlab” and neither where BenchLab computes it"
        )
    return made


def _artifacts(campaign: Fields, slug: str) -> tuple[ArtifactEntry, ...]:
    made = []
    if script := campaign.raw("script"):
        name = campaign.text("script_name") or "script.sql"
        made.append(ArtifactEntry(name, {}, script))
    for value in campaign.items("artifacts"):
        fields = Fields(value, "an artifact", campaign=slug)
        made.append(fields.entry(ArtifactEntry, text=fields.raw("text", "")))
    return tuple(made)
