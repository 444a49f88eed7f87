"""What is known about a topic: the answer, all evidence, what contradicts, what nobody measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.access.selectors.projects import Reader, visible
from runs.archive.selectors import archive, chart
from runs.archive.selectors.answers import certainty
from runs.archive.selectors.archive import Entry
from runs.archive.selectors.version_line import MAJORS
from runs.campaigns.selectors import answers
from runs.campaigns.selectors.answers import CampaignAnswer
from runs.cells.selectors import factor_names, metrics, versions
from runs.cells.selectors.level_names import factors
from runs.charts.evidence import Ratio, Row, Words, evidence
from runs.charts.figure import Figure
from runs.compare.selectors.judge.ratios import RatioRow, ratios_of_executed
from runs.models import (
    BisectionStep,
    Campaign,
    Discrepancy,
    Metric,
    PublishedTable,
    Run,
    Scenario,
)
from runs.models.campaigns import Origin
from runs.scenarios import registry
from runs.shared.formats import publication, spoken, translate_field, translated
from runs.topics.catalogue import TOPICS, Topic

# The newest campaigns measured here that a page tells of.
MOST_MEASURED = 6
# More rows make no picture that can be read; those that the sentence rests on come first.
MOST_ROWS, MOST_RATIOS = 24, 40
MOST_DISCREPANCIES = 6


@dataclass(frozen=True)
class EvidenceRow:
    """A table or a campaign that says something about the topic."""

    year: str
    who: str
    slug: str
    title: str
    versions: str
    machines: tuple[str, ...]
    says: str
    certainty: str
    is_printed: bool
    rests_here: bool = False


@dataclass(frozen=True)
class Square:
    """A version under a load: whether somebody has measured it, and where."""

    major: str
    state: str
    slug: str = ""


@dataclass(frozen=True)
class Gaps:
    """A scenario of the topic, with a square for each version."""

    scenario: str
    title: str
    squares: tuple[Square, ...]
    why_not: str = ""

    @property
    def is_measurable(self) -> bool:
        """Whether a campaign can ask it: BenchLab has a procedure for it."""
        return self.scenario in {scenario.slug for scenario in registry.every()}


@dataclass(frozen=True)
class TopicAnswer:
    """A topic as a reader may see it, in the reader's language.

    `measured` are the newest campaigns executed here that answer, each with its answer.
    """

    topic: Topic
    rows: tuple[EvidenceRow, ...]
    measured: tuple[tuple[Campaign, CampaignAnswer], ...]
    gaps: tuple[Gaps, ...]
    disagreements: tuple[str, ...]
    discrepancies: tuple[Discrepancy, ...]
    further: int
    figure: Figure | None

    @property
    def sentence(self) -> str:
        """The answer: an editor's sentence where its tables are there."""
        if any(row.rests_here for row in self.rows):
            return translated(self.topic.sentence)
        if self.measured:
            return self.measured[0][1].sentence
        return _("Nobody has measured this yet")

    @property
    def detail(self) -> str:
        """What belongs to an editor's sentence and is too long for a title; else empty."""
        rests_here = any(row.rests_here for row in self.rows)
        return translated(self.topic.detail) if rests_here else ""

    @property
    def basis(self) -> str:
        """Who says so, on which machines, and how certain it is: of all that it rests on."""
        rows = [row for row in self.rows if row.rests_here]
        facts = (
            [row.who for row in rows],
            [machine for row in rows for machine in row.machines],
            [row.certainty for row in rows],
        )
        return " · ".join(
            ", ".join(dict.fromkeys(filter(None, texts)))
            for texts in facts
            if any(texts)
        )

    @property
    def years(self) -> str:
        """From the oldest to the newest evidence."""
        years = sorted({row.year for row in self.rows if row.year})
        return "–".join(dict.fromkeys((years[0], years[-1]))) if years else ""

    @property
    def empty_squares(self) -> int:
        """How many versions nobody has measured."""
        return sum(
            square.state == "unknown" for row in self.gaps for square in row.squares
        )

    @property
    def squares(self) -> int:
        """How many there are."""
        return sum(len(row.squares) for row in self.gaps)


@dataclass(frozen=True)
class Card:
    """A topic in the list: its sentence, and how many tables of the archive are about it."""

    topic: Topic
    tables: int

    @property
    def sentence(self) -> str:
        """The answer; empty where the archive has nothing of it."""
        return translated(self.topic.sentence) if self.tables else ""

    @property
    def detail(self) -> str:
        """What goes on where the sentence ends."""
        return translated(self.topic.detail) if self.tables else ""


def cards() -> list[Card]:
    """All topics. One query."""
    tables = list(
        PublishedTable.objects.values_list("campaign__scenario__slug", "campaign__slug")
    )
    return [
        Card(
            topic,
            sum(
                scenario in topic.scenarios or campaign in topic.rests_on
                for scenario, campaign in tables
            ),
        )
        for topic in TOPICS
    ]


def keys(topic: Topic, *, to: Reader) -> tuple[int, ...]:
    """The campaigns that an answer is made of: all published ones, and the newest executed here.

    Two queries.
    """
    of_topic = Campaign.objects.filter(
        Q(scenario__slug__in=topic.scenarios) | Q(slug__in=topic.rests_on)
    )
    published = of_topic.filter(origin=Origin.PUBLISHED).order_by("pk")
    return (
        *published.values_list("pk", flat=True),
        *_executed(topic, to).values_list("pk", flat=True)[:MOST_MEASURED],
    )


def answer(topic: Topic, *, to: Reader) -> TopicAnswer:
    """All that is known. The number of queries grows with the tables of the topic that are drawn,
    at most MOST_ROWS, and not with the lab.
    """
    entries = _entries(topic)
    executed = list(_executed(topic, to)[:MOST_MEASURED])
    said = answers.read_known_answers(executed)
    measured = tuple(
        (campaign, said[campaign.pk])
        for campaign in executed
        if campaign.pk in said and said[campaign.pk].is_there
    )
    discrepancies = list(
        archive.discrepancies()
        .filter(table__campaign__scenario__slug__in=topic.scenarios)
        .order_by("weight", "table__source__year", "table__ordinal", "ordinal")
    )
    return TopicAnswer(
        topic,
        (*_printed_rows(entries, topic), *map(_measured_row, measured)),
        measured,
        tuple(_gaps(topic, entries, executed)),
        (
            *([translated(topic.contradicts)] if topic.contradicts else []),
            *_disagreements(entries),
        ),
        tuple(discrepancies[:MOST_DISCREPANCIES]),
        max(0, len(discrepancies) - MOST_DISCREPANCIES),
        _figure(
            [entry for entry in entries if _is_measured_by(entry, topic)],
            [campaign for campaign, _said in measured],
            topic.since,
        ),
    )


def _executed(topic: Topic, to: Reader) -> QuerySet[Campaign]:
    """Campaigns executed here that have ended, the newest first. Steps of bisections are none."""
    ended = Campaign.objects.filter(origin=Origin.EXECUTED).exclude(
        state__in=Campaign.LIVE
    )
    scenarios = (
        Scenario.objects.filter(slug__in=topic.scenarios).order_by().values("pk")
    )
    steps = BisectionStep.objects.filter(campaign=OuterRef("pk"))
    of_topic = visible(ended.filter(scenario__in=scenarios), to=to)
    return of_topic.filter(~Exists(steps)).select_related("scenario").order_by("-pk")


def _entries(topic: Topic) -> list[Entry]:
    """The published tables, those that the sentence rests on first, then the newest. It may rest on
    one of another theme.
    """
    order = {slug: place for place, slug in enumerate(topic.rests_on)}
    entries = [
        entry
        for entry in archive.entries()
        if _is_measured_by(entry, topic) or entry.table.campaign.slug in order
    ]

    def place(entry: Entry) -> tuple[int, int]:
        campaign = entry.table.campaign
        return order.get(campaign.slug, len(order)), -(campaign.year or 0)

    return sorted(entries, key=place)


def _is_measured_by(entry: Entry, topic: Topic) -> bool:
    return entry.table.campaign.scenario.slug in topic.scenarios


def _printed_rows(entries: Sequence[Entry], topic: Topic) -> list[EvidenceRow]:
    again = Run.objects.filter(campaign__published__isnull=False, repeat__gt=1)
    campaign_keys = [entry.table.campaign_id for entry in entries]
    spread = set(
        again.filter(campaign__in=campaign_keys)
        .order_by()
        .values_list("campaign", flat=True)
    )
    return [_printed_row(entry, topic, spread) for entry in entries]


def _printed_row(entry: Entry, topic: Topic, spread: set[int]) -> EvidenceRow:
    table = entry.table
    campaign = table.campaign
    texts = [spoken(finding) for finding in table.findings]
    year = str(campaign.year or table.source.year)
    return EvidenceRow(
        year=year,
        who=publication(table.source.slug),
        slug=campaign.slug,
        title=translate_field(campaign, "title"),
        versions=", ".join(table.versions),
        machines=tuple(entry.hardware.values()),
        says=texts[0] if texts else "",
        certainty=certainty(
            table.repeats, table.statistic, has_spread=campaign.pk in spread
        )
        if table.has_figures
        else _("published as a picture, without numbers"),
        is_printed=True,
        rests_here=campaign.slug in topic.rests_on,
    )


def _measured_row(measured: tuple[Campaign, CampaignAnswer]) -> EvidenceRow:
    campaign, said = measured
    return EvidenceRow(
        year=str(campaign.created_at.year),
        who=_("measured here"),
        slug=campaign.slug,
        title=translate_field(campaign, "title"),
        versions=", ".join(map(str, campaign.factors.get("version", ()))),
        machines=(),
        says=said.sentence,
        certainty=said.family,
        is_printed=False,
    )


def _disagreements(entries: Sequence[Entry]) -> list[str]:
    """Where BenchLab reads a table otherwise than its publication."""
    return [
        spoken(finding)
        for entry in entries
        for finding in entry.table.findings
        if finding.get("by") == "disagree"
    ]


def _gaps(
    topic: Topic, entries: Sequence[Entry], executed: Sequence[Campaign]
) -> list[Gaps]:
    titles = dict(
        Scenario.objects.filter(slug__in=topic.scenarios)
        .order_by()
        .values_list("slug", "title")
    )
    rows = []
    for slug in topic.scenarios:
        if slug not in titles:
            continue
        square_of_major: dict[str, Square] = {}
        for entry in entries:
            if entry.table.campaign.scenario.slug == slug:
                state = "printed" if entry.table.has_figures else "words"
                for version in entry.table.versions:
                    major = versions.major(version)
                    square_of_major.setdefault(
                        major, Square(major, state, entry.table.campaign.slug)
                    )
        for campaign in executed:
            if campaign.scenario.slug == slug:
                for version in campaign.factors.get("version", ()):
                    major = versions.major(str(version))
                    square_of_major[major] = Square(major, "decided", campaign.slug)
        squares = tuple(
            square_of_major.get(major, Square(major, "unknown"))
            for major in MAJORS[MAJORS.index(topic.first or MAJORS[0]) :]
        )
        reasons = (
            spoken(entry.table.reproduce.get("why_not"))
            for entry in entries
            if entry.table.campaign.scenario.slug == slug
        )
        why_not = next(filter(None, reasons), "")
        rows.append(Gaps(slug, translated(titles[slug]), squares, why_not))
    return rows


def _figure(
    entries: Sequence[Entry], executed: Sequence[Campaign], since: str
) -> Figure | None:
    """Every ratio of the topic in one picture, against the version `since`; None without any."""
    rows = [*_executed_rows(executed)]
    for entry in entries:
        room = MOST_ROWS - len(rows)
        if room <= 0:
            break
        # Of the last table that has room, the newest versions.
        rows += _rows_of_table(entry.table, since)[-room:]
    words = Words(
        _("Ratio to the base, above 1 is better"),
        _("printed"),
        _("measured here"),
        _("interval (95 %)"),
    )
    return evidence(rows[:MOST_ROWS], words) if rows else None


def _version(name: str) -> str:
    """In a picture of PostgreSQL's versions the number says enough."""
    return name.removeprefix("PostgreSQL ")


def _base_of(campaign: Campaign, since: str) -> dict[str, Any]:
    """What of a chart is another one where the question names a version."""
    bases = [
        str(version)
        for version in campaign.factors.get("version", ())
        if since and versions.major(str(version)) == since
    ]
    return {"ratio": {"factor": "version", "base": bases[0]}} if bases else {}


def _rows_of_table(table: PublishedTable, since: str) -> list[Row]:
    """The ratios that its page shows, a row for each head. A metric that is neither better high nor
    low has none. Where the question names a version they are against its release.
    """
    campaign = table.campaign
    if not table.has_figures:
        return []
    drawn = chart.charts(campaign, factors(table.columns))
    if not drawn:
        return []
    wanted, plots = drawn[0]
    ratios = chart.ratios_of({**wanted, **_base_of(campaign, since)}, plots)
    direction = plots[0].metric.direction
    if ratios is None or direction == "neutral":
        return []
    prefix = (
        f"{campaign.year or table.source.year} {translate_field(campaign, 'title')}"
    )
    rows = []
    for column, head in enumerate(ratios.heads):
        if since and versions.order(_version(head)) < versions.order(since):
            continue
        points = [
            Ratio(value if direction == "higher" else 1 / value, name)
            for name, values in ratios.rows
            if (value := values[column])
        ]
        if points:
            pair = f"{_version(head)} : {_version(ratios.base)}"
            is_one_of_several = len(ratios.heads) > 1
            rows.append(
                Row(
                    pair if is_one_of_several else prefix,
                    tuple(points[:MOST_RATIOS]),
                    _address(campaign),
                    True,
                    prefix if is_one_of_several else "",
                )
            )
    return rows


def _executed_rows(executed: Sequence[Campaign]) -> list[Row]:
    """A row for each two levels that a campaign compares."""
    if not executed:
        return []
    primary = metrics.primary_names(executed)
    lower = Metric.objects.filter(
        name__in=primary.values(), project=None, direction="lower"
    )
    better_lower = set(lower.values_list("name", flat=True))
    rows = []
    for campaign, ratio_rows in ratios_of_executed(primary).items():
        words = factor_names.words(campaign).omit_common(
            row.levels for row in ratio_rows
        )
        is_lower = primary[campaign] in better_lower
        points = [
            _ratio(row, words.listed(row.levels), is_lower=is_lower)
            for row in ratio_rows
        ]
        measured_points = tuple(point for point in points if point is not None)[
            :MOST_RATIOS
        ]
        if measured_points:
            label = f"{campaign.created_at.year} {translate_field(campaign, 'title')}"
            rows.append(Row(label, measured_points, _address(campaign), False))
    return rows


def _ratio(row: RatioRow, label: str, *, is_lower: bool) -> Ratio | None:
    comparison = row.comparison
    if not comparison.ratio:
        return None
    if not is_lower:
        return Ratio(comparison.ratio, label, comparison.low, comparison.high)
    low = 1 / comparison.high if comparison.high else None
    high = 1 / comparison.low if comparison.low else None
    return Ratio(1 / comparison.ratio, label, low, high)


def _address(campaign: Campaign) -> str:
    return reverse("campaign-detail", args=[campaign.slug])
