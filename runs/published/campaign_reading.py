"""Reads one campaign of a data file, with its columns, rows and rules."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runs.published.document import (
    ArtifactEntry,
    CampaignEntry,
    Column,
    Finding,
    Rule,
    SameAs,
)
from runs.published.errors import PublishedFileError
from runs.published.fields import Fields, as_text, typed

TOPOLOGIES = ("single", "client", "streaming", "logical", "fdw", "sharded", "pooled")


def read_campaign(value: Any) -> CampaignEntry:
    """A campaign. Raises PublishedFileError, which names it."""
    slug = str(value.get("slug", "?")) if isinstance(value, Mapping) else "?"
    fields = Fields(value, "it", campaign=slug)
    columns = tuple(_column(field, slug) for field in fields.items("columns"))
    topology = Fields(fields.raw("topology", {}), "topology", campaign=slug)
    tool = Fields(fields.raw("tool", {}), "tool", campaign=slug)
    further_fields = {
        "topology_kind": topology.text("kind", choices=TOPOLOGIES),
        "topology_name": topology.pair("name"),
        "tool_name": tool.text("name"),
        "tool_version": tool.text("version"),
        "columns": columns,
        "grid": _grid(fields.text("rows"), len(columns), slug),
        "derived": {
            metric: _rule(rule, slug)
            for metric, rule in fields.mapping("derived").items()
        },
        "same_as": _same_as(fields),
        "chart": typed(fields.raw("chart", {})),
        "findings": tuple(_finding(field, slug) for field in fields.items("findings")),
        "artifacts": _artifacts(fields, slug),
    }
    for nested_fields in (topology, tool):
        nested_fields.close()
    return _checked(fields.entry(CampaignEntry, **further_fields), fields)


def _checked(campaign_entry: CampaignEntry, fields: Fields) -> CampaignEntry:
    """The entry. Raises PublishedFileError where it contradicts itself."""
    if campaign_entry.repeats == 1 and campaign_entry.statistic is None:
        campaign_entry = replace(campaign_entry, statistic="single")
    if campaign_entry.statistic and not campaign_entry.repeats:
        raise fields.fault(
            "has a statistic and no repeats: leave out what is not printed"
        )
    if campaign_entry.has_figures != bool(campaign_entry.grid):
        raise fields.fault(
            "needs rows, or has_figures: false where only a picture has the figures"
        )
    return campaign_entry


def _column(value: Any, slug: str) -> Column:
    fields = Fields(value, "a column", campaign=slug)
    factor = fields.text("factor")
    values = {
        word: typed(level) if isinstance(level, Mapping) else typed(level, name=factor)
        for word, level in fields.mapping("values").items()
    }
    column = fields.entry(
        Column,
        is_text=fields.flag("text"),
        values=values,
        units={unit: float(size) for unit, size in fields.mapping("units").items()},
        same_as=_same_as(fields),
        described=_described(fields, values),
    )
    if column.factor and (column.metric or column.is_text):
        raise fields.fault("is a factor and something else")
    return column


def _described(fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the page needs about a column; words that mean several levels are left out."""
    column_fields = {
        "label": fields.raw("label", ""),
        "group": fields.raw("group", ""),
        "factor": fields.raw("factor"),
        "metric": fields.raw("metric"),
        "levels": fields.levels("levels"),
        "label_of": fields.mapping("label_of"),
        "values": {
            word: str(level)
            for word, level in values.items()
            if not isinstance(level, Mapping)
        },
        "repeat": fields.number("repeat"),
    }
    return {
        name: value
        for name, value in column_fields.items()
        if value not in (None, {}, "")
    }


def _grid(text: str, width: int, slug: str) -> tuple[tuple[str, ...], ...]:
    rows = []
    for line_number, line in enumerate(
        line for line in text.splitlines() if line.strip()
    ):
        cells = tuple(cell.strip() for cell in line.split("|"))
        if len(cells) != width:
            message = (
                f"has {len(cells)} cells, the table {width} columns: “{line.strip()}”."
            )
            raise PublishedFileError(
                message, campaign=slug, row=line_number, words=line.strip()
            )
        rows.append(cells)
    return tuple(rows)


def _rule(value: Any, slug: str) -> Rule:
    fields = Fields(value, "a derived metric", campaign=slug)
    over = {name: tuple(levels) for name, levels in fields.levels("over").items()}
    forms = ("factor", "percent", "inverse", "loss", "less")
    form: Any = fields.text("as", choices=forms) or "factor"
    target_levels, same_as = fields.levels("to"), _same_as(fields)
    operands = {kind: fields.text(kind) for kind in ("ratio", "median", "sum")}
    fields.close()
    if same_as:
        return Rule("same_as", same_as=same_as[0])
    for kind in ("ratio", "median", "sum"):
        if operands[kind]:
            return Rule(kind, operands[kind], to=target_levels, form=form, over=over)
    raise fields.fault("needs ratio, median, sum or same_as")


def _same_as(fields: Fields) -> tuple[SameAs, ...]:
    """One, or a list of them."""
    raw = fields.raw("same_as", [])
    raw_list = raw if isinstance(raw, list) else [raw]
    return tuple(
        Fields(same_figure, "same_as", campaign=fields.campaign).entry(SameAs)
        for same_figure in raw_list
    )


def _finding(value: Any, slug: str) -> Finding:
    fields = Fields(value, "a finding", campaign=slug)
    text = {"en": fields.text("en"), "ja": fields.text("ja")}
    finding = fields.entry(Finding, text=as_text(text, "a finding", campaign=slug))
    is_ours = finding.by == "benchlab"
    if is_ours == bool(finding.section) or (finding.quote and not finding.section):
        raise fields.fault(
            f"(“{finding.text.en}”) needs the “section” and the “quote” in which the publication "
            "says it, or “by: benchlab” and neither where BenchLab computes it"
        )
    return finding


def _artifacts(campaign: Fields, slug: str) -> tuple[ArtifactEntry, ...]:
    artifact_entries = []
    if script := campaign.raw("script"):
        name = campaign.text("script_name") or "script.sql"
        artifact_entries.append(ArtifactEntry(name, {}, script))
    for value in campaign.items("artifacts"):
        fields = Fields(value, "an artifact", campaign=slug)
        artifact_entries.append(
            fields.entry(ArtifactEntry, text=fields.raw("text", ""))
        )
    return tuple(artifact_entries)
