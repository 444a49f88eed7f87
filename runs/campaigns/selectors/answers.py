"""What a campaign answers: made once, and printed by its page, the API, lists and the search.

Of an executed campaign the sentence of its ratios, of uploads with commits that of their history,
of a printed table its conclusion.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db.models import Exists, OuterRef, Subquery
from django.utils.translation import gettext as _

from runs.analysis.inference import PROVEN, Inference, Verdict, overall
from runs.archive.selectors import answers as printed_answers
from runs.archive.selectors import conclusions
from runs.campaigns.selectors import campaigns as campaign_selectors
from runs.campaigns.selectors.campaigns import CampaignRow
from runs.cells.selectors import factor_names, metrics
from runs.compare.selectors.describe import summary
from runs.compare.selectors.describe.verdict_words import (
    size,
    size_of_all,
    verdict_word,
    worded,
)
from runs.compare.selectors.judge.exit_codes import exit_code
from runs.compare.selectors.judge.ratios import RatioRow, Tables, ratios_of_executed
from runs.histories.selectors import answers as history_answers
from runs.histories.selectors import causes, histories
from runs.models import Campaign, Cell, PublishedTable, Run
from runs.models.campaigns import Origin
from runs.shared import caching, formats

# The newest changes of each upload's campaign of which the worst is its answer.
MOST_CHANGES = 50
# A campaign of more cells is judged for its own page only: a list would read all of each.
MOST_CELLS = 200


@dataclass(frozen=True)
class CampaignAnswer:
    """What a campaign says, in the language of its reader.

    `sentences` has the whole first. `low` and `high` bound the ratio that the first is about, where
    one does; `family` says for what they hold. `verdict` is that of the whole.
    """

    question: str
    sentences: tuple[str, ...] = ()
    short: str = ""
    low: float | None = None
    high: float | None = None
    family: str = ""
    verdict: Verdict = "too_few_runs"

    @property
    def sentence(self) -> str:
        """The title of the answer."""
        return self.sentences[0] if self.sentences else _("No answer yet")

    @property
    def is_there(self) -> bool:
        """Whether there is an answer."""
        return bool(self.sentences)

    @property
    def exit_code(self) -> int:
        """The exit status of a CI job."""
        return exit_code(self.verdict)

    @property
    def tone(self) -> str:
        """The name of its colour and sign."""
        return formats.tone(self.verdict)

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return vars(self) | {"sentences": list(self.sentences)}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "CampaignAnswer":
        """From what `to_json` gave."""
        return cls(**{**kept, "sentences": tuple(kept["sentences"])})


def read_answer(campaign: Campaign) -> CampaignAnswer:
    """The answer of its page; kept until a result of it changes. A dozen queries where it is not.

    In the reader's language.
    """
    if campaign.origin == Origin.PUBLISHED:
        return _answer_published([campaign]).get(campaign.pk, _no_answer(campaign))
    if campaign.origin == Origin.UPLOADED:
        answers_of_uploads = _answer_uploaded([campaign])
        if campaign.pk in answers_of_uploads:
            return answers_of_uploads[campaign.pk]
    cache_versions = caching.versions([campaign.pk])
    kept_answer = caching.answer(
        ("answer", campaign.pk),
        cache_versions.results,
        lambda: _judged(campaign).to_json(),
    )
    return CampaignAnswer.from_json(kept_answer)


def read_known_answers(campaigns: Sequence[Campaign]) -> dict[int, CampaignAnswer]:
    """By key what each says, of those whose answer is known without judging at length: of executed
    ones those of at most MOST_CELLS cells.

    A dozen queries for any number of campaigns.
    """
    answers = _answer_published([c for c in campaigns if c.origin == Origin.PUBLISHED])
    answers |= _answer_uploaded([c for c in campaigns if c.origin == Origin.UPLOADED])
    executed = [
        c for c in campaigns if c.origin == Origin.EXECUTED and c.state not in c.LIVE
    ]
    keys = sorted(campaign.pk for campaign in executed)
    version = caching.versions(keys).results if keys else None
    kept_answers = caching.answer(
        ("answers", keys), version, lambda: _answer_executed(executed)
    )
    answers |= {
        row["campaign"]: CampaignAnswer.from_json(row["answer"]) for row in kept_answers
    }
    return answers


def question_of(campaign: Campaign) -> str:
    """What it asks, in words; its title where nobody wrote that."""
    return formats.translate_field(campaign, "question") or formats.translate_field(
        campaign, "title"
    )


def _no_answer(campaign: Campaign) -> CampaignAnswer:
    return CampaignAnswer(question_of(campaign))


def _judged(campaign: Campaign) -> CampaignAnswer:
    metric = metrics.primary(campaign)
    if metric is None:
        return _no_answer(campaign)
    return _answer_of_rows(campaign, Tables(campaign, metric.name).conclusions())


def _answer_of_rows(campaign: Campaign, rows: Sequence[RatioRow]) -> CampaignAnswer:
    if not rows:
        return _no_answer(campaign)
    words = factor_names.words(campaign).omit_common(row.levels for row in rows)
    pairs = summary.group_by_pair(rows, words)
    sentences = tuple(
        summary.summarise_pair(*names, of_pair) for names, of_pair in pairs.items()
    )
    first_rows = next(iter(pairs.values()))
    whole: Inference = first_rows[0].together or first_rows[0].comparison
    verdict = overall(row.comparison.verdict for row in first_rows)
    if verdict in PROVEN and whole.verdict != verdict:
        return _answer_of_some(campaign, sentences, first_rows, verdict)
    return CampaignAnswer(
        question_of(campaign),
        sentences,
        size(whole) or str(verdict_word(whole)),
        whole.low,
        whole.high,
        _(
            "The overall effect of all conditions, 95 %; rows have intervals that hold together."
        )
        if first_rows[0].together
        else _("The ratio of the one condition, 95 %."),
        verdict,
    )


def _answer_of_some(
    campaign: Campaign,
    sentences: tuple[str, ...],
    rows: Sequence[RatioRow],
    verdict: Verdict,
) -> CampaignAnswer:
    """Of conditions that differ in their verdicts: no ratio bounds what the sentence says."""
    behind = [row.comparison for row in rows if row.comparison.verdict == verdict]
    values = {
        "size": worded(behind[0], size_of_all(behind)),
        "number": len(behind),
        "total": max(rows[0].asked, len(rows)),
    }
    return CampaignAnswer(
        question_of(campaign),
        sentences,
        _("%(size)s, %(number)d of %(total)d") % values,
        family=_(
            "Each condition has its interval; all hold together in 95 of 100 tables."
        ),
        verdict=verdict,
    )


def _answer_executed(campaigns: Sequence[Campaign]) -> list[dict[str, Any]]:
    named = metrics.primary_names(_exclude_wide(campaigns))
    rows_of = ratios_of_executed(named) if named else {}
    return [
        {"campaign": campaign.pk, "answer": _answer_of_rows(campaign, rows).to_json()}
        for campaign, rows in rows_of.items()
    ]


def last_cell() -> Subquery:
    """Of a query for campaigns, the place of each one's last cell, found by an index."""
    cells = Cell.objects.filter(campaign=OuterRef("pk")).order_by("-ordinal")
    return Subquery(cells.values("ordinal")[:1])


def _exclude_wide(campaigns: Sequence[Campaign]) -> list[Campaign]:
    """Those of at most MOST_CELLS cells. One query, which reads the last cell of each."""
    rows_of_campaigns = Campaign.objects.filter(
        pk__in=[campaign.pk for campaign in campaigns]
    ).order_by()
    wide = rows_of_campaigns.alias(last=last_cell()).filter(last__gt=MOST_CELLS)
    wide_keys = set(wide.values_list("pk", flat=True))
    return [campaign for campaign in campaigns if campaign.pk not in wide_keys]


def _answer_published(campaigns: Collection[Campaign]) -> dict[int, CampaignAnswer]:
    """Of printed tables: their answer where readers ask for it, else their first conclusion, else
    what BenchLab computes from their figures.
    """
    if not campaigns:
        return {}
    answer_of_campaign = {
        answer.campaign: answer for answer in printed_answers.answers()
    }
    tables = PublishedTable.objects.filter(
        campaign__in=[campaign.pk for campaign in campaigns]
    )
    findings = dict(tables.values_list("campaign_id", "findings"))
    answers = {}
    for campaign in campaigns:
        answer = answer_of_campaign.get(campaign.slug)
        texts = [
            formats.spoken(finding)
            for finding in conclusions.printed(findings.get(campaign.pk, ()))
        ]
        if answer is not None:
            answers[campaign.pk] = CampaignAnswer(
                formats.spoken(answer.asked) or question_of(campaign),
                (answer.text, *texts),
                answer.text,
                min(answer.ratios, default=None),
                max(answer.ratios, default=None),
                _("From the least to the greatest printed ratio: not tested."),
            )
        elif texts:
            family = _("As the publication concludes: not tested.")
            answers[campaign.pk] = CampaignAnswer(
                question_of(campaign), tuple(texts), texts[0], family=family
            )
        elif computed := conclusions.computed(findings.get(campaign.pk, ())):
            texts = [formats.spoken(finding) for finding in computed]
            family = _("As BenchLab computes from the printed figures: not tested.")
            answers[campaign.pk] = CampaignAnswer(
                question_of(campaign), tuple(texts), texts[0], family=family
            )
    return answers


def _answer_uploaded(campaigns: Sequence[Campaign]) -> dict[int, CampaignAnswer]:
    """Of uploads where a change stands: since when, and by how much; else that none does.

    Three queries, or none.
    """
    if not campaigns:
        return {}
    changes = histories.newest_standing(campaigns, MOST_CHANGES)
    of = {campaign.pk: campaign for campaign in campaigns}
    answers: dict[int, CampaignAnswer] = {}
    for cause in causes.sort_by_interest(
        causes.find_causes(changes, by_decision=False)
    ):
        key = cause.first.campaign_id
        if key in answers:
            continue
        answers[key] = CampaignAnswer(
            question_of(of[key]),
            (cause.sentence, *cause.further_lines),
            cause.size,
            cause.low,
            cause.high,
            history_answers.family(),
            cast(Verdict, cause.first.verdict),
        )
    cells = Cell.objects.filter(campaign=OuterRef("pk"), revision__isnull=False)
    with_history = Campaign.objects.filter(
        Exists(cells), pk__in=[key for key in of if key not in answers]
    )
    for key in with_history.values_list("pk", flat=True):
        text = _("No change of level")
        answers[key] = CampaignAnswer(
            question_of(of[key]),
            (text,),
            text,
            family=history_answers.family(),
            verdict="same",
        )
    return answers


@dataclass(frozen=True)
class Dates:
    """When the data of a campaign are of: its first and its last run, never their upload."""

    first: datetime | None
    last: datetime | None

    @property
    def is_of_days(self) -> bool:
        """Whether they are of more than one day."""
        return bool(self.first and self.last and self.first.date() < self.last.date())


def dates_of(campaigns: Collection[Campaign]) -> dict[int, Dates]:
    """By key when the runs of each began. One query, which reads two runs of each.

    By the campaign's key alone: by the campaign Django would sort all its runs, as campaigns are.
    """
    runs = Run.objects.filter(campaign=OuterRef("pk"), started_at__isnull=False)
    moments = Campaign.objects.filter(
        pk__in=[campaign.pk for campaign in campaigns]
    ).values_list(
        "pk",
        Subquery(runs.order_by("campaign_id", "pk").values("started_at")[:1]),
        Subquery(runs.order_by("campaign_id", "-pk").values("started_at")[:1]),
    )
    return {
        # An upload of older data comes later.
        key: Dates(min(first, last), max(first, last))
        if first and last
        else Dates(first, last)
        for key, first, last in moments
    }


@dataclass(frozen=True)
class ListedCampaign:
    """A campaign in a list: how it stands, what it answers, and when its data are of."""

    row: CampaignRow
    answer: CampaignAnswer | None
    dates: Dates | None


def listed_campaigns(campaigns: Iterable[Campaign]) -> list[ListedCampaign]:
    """These campaigns as every list of them shows them, in the same order."""
    return answered_rows(campaign_selectors.rows(campaigns))


def answered_rows(rows: Sequence[CampaignRow]) -> list[ListedCampaign]:
    """The same of campaigns whose runs are counted already."""
    campaigns = [row.campaign for row in rows]
    answer_of, dates = read_known_answers(campaigns), dates_of(campaigns)
    return [
        ListedCampaign(row, answer_of.get(row.campaign.pk), dates.get(row.campaign.pk))
        for row in rows
    ]
