"""Reads one campaign of a data file, with its columns, rows and rules."""

from collections.abc import Mapping
from typing import Any

from runs.published.document import (
    ArtifactEntry,
    CampaignEntry,
    Column,
    DiscrepancyEntry,
    Finding,
    NodeEntry,
    Rule,
    SameAs,
)
from runs.published.errors import PublishedFileError
from runs.published.fields import Fields, as_text, typed

STATISTICS = ("single", "median", "mean")
KINDS = ("ratio", "median", "sum", "other_table", "repeated_row", "not_measured", "text")
CONCLUDES = ("publication", "benchlab", "disagree")
WEIGHTS = ("wrong_figure", "wrong_conclusion", "rounding", "wording")
TOPOLOGIES = ("single", "client", "streaming", "logical", "fdw", "sharded", "pooled")


def read_campaign(value: Any) -> CampaignEntry:
    """A campaign. Raises PublishedFileError, which names it."""
    slug = str(value.get("slug", "?")) if isinstance(value, Mapping) else "?"
    fields = Fields(value, "it", campaign=slug)
    columns = tuple(_column(each, slug) for each in fields.items("columns"))
    topology = Fields(fields.raw("topology", {}), "topology", campaign=slug)
    tool = Fields(fields.raw("tool", {}), "tool", campaign=slug)
    statistic: Any = fields.text("statistic", choices=STATISTICS) or None
    repeats = fields.number("repeats")
    made = CampaignEntry(
        slug=fields.text("slug", required=True),
        title=fields.pair("title", required=True),
        question=fields.pair("question"),
        asked=fields.pair("asked"),
        yes_if=fields.text("yes_if", choices=("less", "more")),
        scenario=fields.text("scenario", required=True),
        table=fields.text("table", required=True),
        section=fields.text("section"),
        page=fields.text("page"),
        figure=fields.text("figure"),
        has_figures=fields.flag("has_figures", default=True),
        repeats=repeats,
        statistic=statistic or ("single" if repeats == 1 else None),
        parameters=typed(fields.mapping("parameters")),
        method=fields.pair("method"),
        topology_kind=topology.text("kind", choices=TOPOLOGIES),
        topology_name=topology.pair("name"),
        nodes=tuple(_node(each, slug) for each in fields.items("nodes")),
        tool_name=tool.text("name"),
        tool_version=tool.text("version"),
        versions={key: str(version) for key, version in fields.mapping("versions").items()},
        levels=fields.levels("levels"),
        factors=fields.levels("factors"),
        columns=columns,
        grid=_grid(fields.text("rows"), len(columns), slug),
        not_measured=frozenset(fields.items("not_measured")),
        inexact=frozenset(fields.items("inexact")),
        unprinted_repeats=tuple(typed(each) for each in fields.items("unprinted_repeats")),
        derived={metric: _rule(rule, slug) for metric, rule in fields.mapping("derived").items()},
        same_as=_same_as_list(fields.raw("same_as"), slug),
        chart=typed(fields.raw("chart", {})),
        findings=tuple(_finding(each, slug) for each in fields.items("findings")),
        notes=fields.pairs("notes"),
        discrepancies=tuple(_discrepancy(each, slug) for each in fields.items("discrepancies")),
        artifacts=_artifacts(fields, slug),
        reproduce=typed(fields.mapping("reproduce")),
    )
    for each in (topology, tool, fields):
        each.close()
    return _checked(made, fields)


def _checked(made: CampaignEntry, fields: Fields) -> CampaignEntry:
    """The entry. Raises PublishedFileError where it contradicts itself."""
    if made.statistic and not made.repeats:
        raise fields.fault("has a statistic and no repeats: leave out what is not printed")
    if made.has_figures != bool(made.grid):
        raise fields.fault("needs rows, or has_figures: false where only a picture has the figures")
    return made


def _node(value: Any, slug: str) -> NodeEntry:
    fields = Fields(value, "a node", campaign=slug)
    made = NodeEntry(
        role=fields.text("role", required=True),
        name=fields.pair("name"),
        hardware=fields.text("hardware"),
        environment=fields.text("environment"),
        configuration=fields.text("configuration"),
        software=fields.text("software"),
        levels=fields.levels("levels"),
    )
    fields.close()
    return made


def _column(value: Any, slug: str) -> Column:
    fields = Fields(value, "a column", campaign=slug)
    statistic: Any = fields.text("statistic", choices=STATISTICS) or None
    factor = fields.text("factor")
    values = {
        word: typed(level) if isinstance(level, Mapping) else typed(level, name=factor)
        for word, level in fields.mapping("values").items()
    }
    made = Column(
        factor=factor,
        metric=fields.text("metric"),
        is_text=fields.flag("text", default=False),
        levels=fields.levels("levels"),
        values=values,
        units={unit: float(size) for unit, size in fields.mapping("units").items()},
        repeat=fields.number("repeat"),
        statistic=statistic,
        n=fields.number("n"),
        node=fields.text("node"),
        same_as=_same_as_list(fields.raw("same_as"), slug),
        described=_described(fields, values),
    )
    fields.close()
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
    to, same_as = fields.levels("to"), _same_as_list(fields.raw("same_as"), slug)
    operands = {kind: fields.text(kind) for kind in ("ratio", "median", "sum")}
    fields.close()
    if same_as:
        return Rule("same_as", same_as=same_as[0])
    for kind in ("ratio", "median", "sum"):
        if operands[kind]:
            return Rule(kind, operands[kind], to=to, form=form, over=over)
    raise fields.fault("needs ratio, median, sum or same_as")


def _same_as_list(value: Any, slug: str) -> tuple[SameAs, ...]:
    if value is None:
        return ()
    return tuple(_same_as(each, slug) for each in (value if isinstance(value, list) else [value]))


def _same_as(value: Any, slug: str) -> SameAs:
    fields = Fields(value, "same_as", campaign=slug)
    made = SameAs(
        fields.text("table", required=True), fields.text("metric") or None, fields.levels("levels")
    )
    fields.close()
    return made


def _finding(value: Any, slug: str) -> Finding:
    fields = Fields(value, "a finding", campaign=slug)
    by: Any = fields.text("by", choices=CONCLUDES) or "publication"
    text = {"en": fields.text("en"), "ja": fields.text("ja")}
    section, quote = fields.text("section"), fields.text("quote")
    made = Finding(as_text(text, "a finding", campaign=slug), by, section, quote)
    fields.close()
    if (by == "benchlab") == bool(section or quote) or bool(section) != bool(quote):
        raise fields.fault(
            f"(“{made.text.en}”) needs the “section” and the “quote” in which the publication says "
            "it, or “by: benchlab” and neither where BenchLab computes it"
        )
    return made


def _discrepancy(value: Any, slug: str) -> DiscrepancyEntry:
    fields = Fields(value, "a discrepancy", campaign=slug)
    made = DiscrepancyEntry(
        kind=fields.text("kind", choices=KINDS) or "text",
        printed=fields.text("printed", required=True),
        recomputed=fields.text("recomputed"),
        explanation=fields.pair("explanation"),
        weight=fields.text("weight", choices=WEIGHTS),
        figures=tuple(str(each) for each in fields.items("figures")),
    )
    fields.close()
    return made


def _artifacts(campaign: Fields, slug: str) -> tuple[ArtifactEntry, ...]:
    made = []
    if script := campaign.raw("script"):
        name = campaign.text("script_name") or "script.sql"
        made.append(ArtifactEntry(name, {}, script))
    for value in campaign.items("artifacts"):
        fields = Fields(value, "an artifact", campaign=slug)
        made.append(
            ArtifactEntry(
                fields.text("name", required=True), fields.levels("levels"), fields.raw("text", "")
            )
        )
        fields.close()
    return tuple(made)
