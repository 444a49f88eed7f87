"""One search over all that a reader may see: campaigns, runs, machines, configurations, pages.

Campaigns are ranked by where they have the words: a title, a question or an answer weighs more than
a theme, a factor or a version, and these more than hosts and texts. A number is a version, a level
or part of a title; a year of publication only where four digits are asked for.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import BigIntegerField, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.archive.selectors.version_line import UPDATE
from runs.campaigns.selectors import answers
from runs.campaigns.selectors.answers import CampaignAnswer
from runs.cells.selectors import versions
from runs.compare.selectors.address import candidates
from runs.configurations.selectors import configurations
from runs.home.selectors import questions
from runs.home.selectors.questions import SiteQuestion
from runs.models import (
    Campaign,
    CampaignConfiguration,
    Observation,
    PublishedTable,
    Run,
    Server,
    Source,
    Workload,
)
from runs.models.campaigns import Origin
from runs.postgresql_settings import catalogue
from runs.postgresql_settings.catalogue import MAJORS
from runs.published import search_words
from runs.servers.selectors import hardware
from runs.shared.formats import translated
from runs.shared.words import MOST_WORDS, filter_configurations, filter_hardware, saying
from runs.topics.catalogue import TOPICS, Topic
from runs.topics.selectors import topics
from runs.topics.selectors.topics import Card
from runs.workloads.selectors import scenarios

MOST = 8
# They stand before the campaigns that they rest on.
MOST_TOPICS = 2
# So many of the newest campaigns that have the words are ranked.
MOST_RANKED = 500
# What a word is worth by where it stands. Whatever else has it is worth 1.
TITLE, QUESTION, ANSWER = 10.0, 8.0, 6.0
THEME, FACTOR = 5.0, 4.0
NAME, ELSEWHERE = 2.0, 1.0
# What readers ask most comes before its neighbours.
ASKED = 1.0
# What of a published table is searched.
SAID = ("campaign", "asked", "findings", "number", "section")
# Of a word that only begins with the one that is searched for.
BEGINNING = 0.8


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of questions that say nothing of what is asked.
EMPTY_WORDS = _words(
    "a an and any anybody anyone are at be been by can did do does ever for from has have how i in "
    "into is it its may me measured much my of on or our than that the their them there these this "
    "to us was we were what when where which who why will with would you"
)
# When it was says nothing of which page tells it.
TIMES = _words(
    "today yesterday tonight night week month year last latest newest recent recently since now"
)
NUMBER = re.compile(r"\d{1,3}|\d+(?:\.\d+)+|\d{5,}")
VERSION = re.compile(
    r"(?i)\b(?:postgresql|postgres|pg|version)\s*v?(\d{1,2}(?:\.\d{1,2}){0,2})\b"
)
# "table 4.5", "section 2.4.3"
PLACE = re.compile(
    r"(?i)\b(?:table|section|chapter|figure|fig)\.?\s+(?=\d+(?:\.\d+)+\b)|[表図第](?=\d)"
)
# "over ten years", "in the last 5 years", "a decade"
NUMBERS = {"two": 2, "three": 3, "five": 5, "ten": 10}
YEARS = re.compile(rf"(?i)\b(?:([1-9]\d?|{'|'.join(NUMBERS)})\s+years|decade)\b")
DECADE = "10"
CLIENTS = re.compile(r"(?i)\b([1-9]\d{0,3})\s+clients?\b")
WRITING = _words(
    "update updates updating write writes writing written insert inserts 更新"
)
SPLIT = re.compile(r"[^\w.+%-]+")


@dataclass(frozen=True)
class Page:
    """A page of BenchLab itself, and the words by which it is found."""

    name: Any
    address: str
    note: Any
    words: frozenset[str]
    query: str = ""


PAGES = (
    Page(
        _("Changes"),
        "change-list",
        _("what got slower or faster, since which commit"),
        _words(
            "change changes regression regressions alarm alarms slower commit red build ci job "
            "broke feed atom"
        ),
    ),
    Page(
        _("Versions"),
        "versions",
        _("each step from 9.2 to the newest version, and what measured it"),
        _words(
            "version versions upgrade upgrades line step steps newest choose best fastest"
        ),
    ),
    Page(
        _("Compare"),
        "compare",
        _("any series against any other"),
        _words("compare comparison difference ratio"),
    ),
    Page(
        _("Publications"),
        "archive",
        _("all printed tables, their corrections and discrepancies"),
        _words("archive publications publication reports pgecons"),
    ),
    Page(
        _("Discrepancies"),
        "archive-discrepancies",
        _("where publications contradict themselves"),
        _words(
            "discrepancies discrepancy contradict contradicts contradiction contradictions "
            "misprint misprints reports publications"
        ),
    ),
    Page(
        _("Topics"),
        "topic-list",
        _("what people ask about PostgreSQL's performance, and what is known"),
        _words("topics topic questions answers overview"),
    ),
    Page(
        _("Bring your load"),
        "load-new",
        _("your own statements on every version"),
        _words("own load loads statements queries log dump upgrade bring measure"),
    ),
    Page(
        _("Help"),
        "help",
        _("what the words mean, how sure a verdict is, and who sees what"),
        _words(
            "help glossary words terms campaign cell run certificate doubtful invalid series "
            "line change interval sure verdict verdicts certain private see sees rights feed "
            "cite citation csv json data chart picture embed"
        ),
    ),
    Page(
        _("Runs"),
        "run-list",
        _("each execution: waiting, failed, invalid"),
        _words("runs run failed failures invalid doubtful waiting queue"),
    ),
    Page(
        _("Servers"),
        "server-list",
        _("machines, their hardware, noise and state"),
        _words(
            "servers server machine machines noise noisy quiet lab healthy health ready load "
            "state"
        ),
    ),
    Page(
        _("Upload a result"),
        "upload-new",
        _("of your own machine, a tool or a CI job"),
        _words("upload uploads ci import token github gitlab"),
    ),
    Page(
        _("Observations"),
        "observation-list",
        _("the same measured over all versions again, each year"),
        _words(
            "observation observations observe yearly year annual edition fixed point 定点観測"
        ),
    ),
    Page(
        _("Schedules"),
        "schedule-list",
        _("what is measured every night or week"),
        _words(
            "schedule schedules nightly night nights weekly cron month months over time course"
        ),
    ),
)


@dataclass(frozen=True)
class Group:
    """What was found of one `kind`, some of `total` rows, after `skip`.

    A kind is a model's name, page, question or topic.
    `is_near` says that these have some of the words only. `answers` are those of campaigns.
    """

    kind: str
    rows: list[Any]
    total: int
    skip: int = 0
    is_near: bool = False
    answers: Mapping[int, CampaignAnswer] | None = None

    @property
    def has_more(self) -> bool:
        """Whether there are rows after these."""
        return self.skip + len(self.rows) < self.total


def everywhere(words: str, *, to: Reader, kind: str = "", skip: int = 0) -> list[Group]:
    """What has all the words, by kind, without empty groups; of one `kind` those after `skip`.

    Where nothing has them all, the campaigns that have most of them. A few queries a kind; none for
    no words.
    """
    if not words.strip():
        return []
    near_questions = questions.matching(_asked(words))
    groups = [
        group
        for group in _groups(words, near_questions, to, kind, skip)
        if group.rows and (not kind or group.kind == kind)
    ]
    upgrades = _upgrade(words, to) if kind in {"", "page"} else []
    whole_line = [Group("page", upgrades, len(upgrades))] if upgrades else []
    return [*whole_line, *(groups or _nearest(words, near_questions, to, skip))]


def _groups(
    words: str,
    near_questions: Sequence[SiteQuestion],
    to: Reader,
    kind: str,
    skip: int,
) -> Iterable[Group]:
    def group(name: str, rows_found: QuerySet[Any]) -> Group:
        after = skip if kind == name else 0
        return Group(
            name, list(rows_found[after : after + MOST]), rows_found.count(), after
        )

    # "548", "#548", "run 548"
    number = words.strip().lower().removeprefix("run").strip().removeprefix("#")
    if (
        number.isdecimal()
        and len(number) < 20
        and int(number) <= BigIntegerField.MAX_BIGINT
    ):
        runs = projects.visible(Run.objects.select_related("campaign", "cell"), to=to)
        yield group("run", runs.filter(pk=int(number)))
    words_asked = _asked(words)
    pages = [page for page in PAGES if words_asked and words_asked <= page.words]
    yield Group("page", pages, len(pages))
    site_questions = [
        question for question in near_questions if words_asked <= question.words
    ]
    yield Group("question", site_questions, len(site_questions))
    cards = _topics(words)
    yield Group("topic", cards, len(cards))
    yield _campaign_group(_ranked(words, to), skip if kind == "campaign" else 0)
    if any(word.is_version for word in parsed(words)):
        # Elsewhere its number is a year, or part of a name.
        return
    sources = Source.objects.order_by("-year")
    yield group(
        "source", saying(sources, words, "slug", "title", "title_ja", "publisher")
    )
    yield group(
        "server", saying(Server.objects.order_by("name"), words, "slug", "name")
    )
    yield group("hardware", filter_hardware(hardware.listed(to=to), words))
    yield group(
        "configuration", filter_configurations(configurations.listed(to=to), words)
    )
    runnable = scenarios.listed(to=to).filter(runnable=True)
    yield group("scenario", saying(runnable, words, "slug", "title", "description"))
    observations = projects.visible(Observation.objects.order_by("-pk"), to=to)
    yield group("observation", saying(observations, words, "slug", "title"))
    workloads = projects.visible(Workload.objects.order_by("name"), to=to)
    yield group("workload", saying(workloads, words, "slug", "name"))


def _nearest(
    words: str, near_questions: list[SiteQuestion], to: Reader, skip: int
) -> list[Group]:
    """What has some of the words: questions about this site, a topic, campaigns."""
    words_asked = _asked(words)
    near_pages = [
        page for page in PAGES if 2 * len(words_asked & page.words) > len(words_asked)
    ]
    near_topics = _topics(words, are_near=True)
    campaigns = _ranked(words, to, are_near=True)
    groups = [
        Group("page", near_pages, len(near_pages), is_near=True),
        Group("question", near_questions, len(near_questions), is_near=True),
        Group("topic", near_topics, len(near_topics), is_near=True),
        _campaign_group(campaigns, skip, is_near=True),
    ]
    return [group for group in groups if group.rows]


def _upgrade(words: str, to: Reader) -> list[Page]:
    """The page from one version to another, where two are asked for, or so many years.

    For years two queries or a few.
    """
    majors_asked = [
        versions.major(word.text) for word in parsed(words) if word.is_number
    ]
    majors = sorted(
        {major for major in majors_asked if major in MAJORS}, key=versions.order
    )
    if years := YEARS.search(words):
        # One major version is released each year; the newest may not be measured yet.
        text = (years[1] or DECADE).lower()
        number = int(text) if text.isdecimal() else NUMBERS[text]
        measured = (
            place
            for place in reversed(range(1, len(MAJORS)))
            if _find_all("", [Word(MAJORS[place], is_version=True)], to)
        )
        newest = next(measured, len(MAJORS) - 1)
        majors = [MAJORS[max(newest - number, 0)], MAJORS[newest]]
    if len(majors) != 2:
        return []
    base, head = majors
    name = gettext("From PostgreSQL %(base)s to %(head)s") % {
        "base": base,
        "head": head,
    }
    note = _("what each step brings, and what nobody has measured")
    fields = {"from": base, "to": head}
    if WRITING & set(words.lower().split()):
        fields["theme"] = UPDATE
    if clients := CLIENTS.search(words):
        fields["clients"] = clients[1]
    query = urlencode(fields)
    return [Page(name, "versions", note, frozenset(), query)]


def _asked(words: str) -> set[str]:
    """The words that say what is asked. How many nights, or which version, is no word of a page."""
    return {
        word for word in words.lower().replace("?", " ").split() if not word.isdecimal()
    } - (EMPTY_WORDS | TIMES)


def unmeasured_setting(words: str, *, to: Reader) -> str:
    """The setting that the words are, if nothing here has it as its question; else nothing.

    What is found then has it among its settings, and says nothing about it. A few queries for a
    setting, none for other words.
    """
    telling = words.lower().replace("?", " ").split()
    name = "_".join(word for word in telling if word not in EMPTY_WORDS)
    if name not in {setting_name.lower() for setting_name in catalogue.all_names()}:
        return ""
    campaigns = projects.visible(Campaign.objects.order_by(), to=to)
    if campaigns.filter(factors__has_key=name).exists() or _is_told(name, to):
        return ""
    values_of_campaigns = (
        CampaignConfiguration.objects.filter(campaign__in=campaigns)
        .order_by()
        .values_list("campaign", KeyTextTransform(name, "revision__settings"))
        .distinct()
    )
    values = Counter(campaign for campaign, _value in values_of_campaigns)
    return "" if any(number > 1 for number in values.values()) else name


def _is_told(setting: str, to: Reader) -> bool:
    """Whether a topic, a title, a question or a conclusion names it, and not a configuration
    alone.
    """
    word = Word(setting)
    if any(_say_topic(topic).weight(word) for topic in TOPICS):
        return True
    if saying(Source.objects.order_by(), setting, "title", "summary").exists():
        return True
    said = _said(_find_all(setting, [word], to))
    return any(campaign.weight(word) > ELSEWHERE for campaign in said.values())


def unmeasured_versions(words: str, *, to: Reader) -> list[str]:
    """The versions among the words that no campaign has measured. Two queries for each at most."""
    versions_asked = [word for word in parsed(words) if word.is_version]
    return [word.text for word in versions_asked if not _find_all("", [word], to)]


def _campaign_group(
    ranked: Sequence[Campaign], skip: int, *, is_near: bool = False
) -> Group:
    rows = list(ranked[skip : skip + MOST])
    answer_of_campaign = answers.read_known_answers(rows) if rows else {}
    return Group("campaign", rows, len(ranked), skip, is_near, answer_of_campaign)


@dataclass(frozen=True)
class Word:
    """A word of a search: a version, another number, or letters."""

    text: str
    is_version: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it counts something; four digits may be a year."""
        return self.is_version or bool(NUMBER.fullmatch(self.text))


def parsed(words: str) -> list[Word]:
    """The words of a search: "PostgreSQL 17" is one, and those that say nothing are left out."""
    words = PLACE.sub(" ", words)
    parsed_words = [
        Word(match[1], is_version=True) for match in VERSION.finditer(words)
    ]
    rest = [text for text in SPLIT.split(VERSION.sub(" ", words).lower()) if text]
    telling = [text for text in rest if text not in EMPTY_WORDS]
    return [*parsed_words, *map(Word, telling or rest)][:MOST_WORDS]


@dataclass(frozen=True)
class Said:
    """What a campaign says, by how much it weighs, and its major versions.

    `asked` is what it is worth that readers ask its question.
    """

    texts: tuple[tuple[float, str], ...]
    majors: frozenset[str]
    asked: float = 0.0

    def weight(self, word: Word) -> float:
        """What a word is worth here; 0 where it does not stand."""
        if word.is_version:
            return FACTOR + 1 if versions.major(word.text) in self.majors else 0.0
        best = (
            FACTOR
            if word.is_number and versions.major(word.text) in self.majors
            else 0.0
        )
        stem = (
            word.text if word.is_number or len(word.text) < 5 else word.text.rstrip("s")
        )
        whole_word = re.compile(rf"(?<![\w.]){re.escape(word.text)}(?![\w.]*\w)")
        beginning = re.compile(rf"(?<!\w){re.escape(stem)}")
        for weight, text in self.texts:
            if weight <= best:
                continue
            if whole_word.search(text):
                best = weight
            elif not word.is_number and beginning.search(text):
                best = max(best, BEGINNING * weight)
            elif not text.isascii() and not word.text.isascii() and word.text in text:
                best = weight
        return best


def _topics(words: str, *, are_near: bool = False) -> list[Card]:
    """The topics that have all the words, in one of the languages; the best first. One query.

    Near is the one that has the most words, if these are half of them and at least two.
    """
    parsed_words = parsed(words)
    scored = []
    for place, card in enumerate(topics.cards() if parsed_words else ()):
        said = _say_topic(card.topic)
        weights = [said.weight(word) for word in parsed_words]
        if all(weights):
            scored.append((-sum(weights), place, card))
        number = sum(map(bool, weights))
        if are_near and number >= max(2, len(parsed_words) / 2):
            scored.append((-100 * number - sum(weights), place, card))
    if are_near:
        scored = sorted(scored)[:1]
    return [card for _weight, _place, card in sorted(scored)[:MOST_TOPICS]]


def _say_topic(topic: Topic) -> Said:
    weighed = (
        (TITLE, topic.title),
        (QUESTION, topic.question),
        (ANSWER, topic.sentence),
        (ANSWER, topic.detail),
        (ANSWER, topic.unknown),
    )
    texts = [(TITLE, search_words.normal(topic.words))]
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            texts += [
                (weight, search_words.normal(translated(text)))
                for weight, text in weighed
            ]
    return Said(tuple(texts), frozenset())


def _ranked(words: str, to: Reader, *, are_near: bool = False) -> list[Campaign]:
    """The campaigns that have all the words, or some, the best first. Three queries, or more."""
    parsed_words = parsed(words)
    campaigns = (
        _find_some(parsed_words, to) if are_near else _find_all(words, parsed_words, to)
    )
    said = _said(campaigns)
    scored = []
    for campaign in campaigns:
        weights = [said[campaign.pk].weight(word) for word in parsed_words]
        if not are_near:
            # PostgreSQL has found letters somewhere; a number has to be one.
            weights = [
                weight or (0.0 if word.is_number else ELSEWHERE)
                for weight, word in zip(weights, parsed_words, strict=True)
            ]
        has_all = all(weights)
        if (has_all and weights) or (are_near and any(weights)):
            number = sum(bool(weight) for weight in weights)
            scored.append((number, sum(weights) + said[campaign.pk].asked, campaign))
    return [campaign for _number, _weight, campaign in sorted(scored, key=_order)]


def _order(entry: tuple[int, float, Campaign]) -> tuple[int, float, bool, int]:
    """The most words, the most weight; then what is measured here, the newest; then as printed."""
    number, weight, campaign = entry
    is_printed = campaign.origin == Origin.PUBLISHED
    return -number, -weight, is_printed, campaign.pk if is_printed else -campaign.pk


def _find_all(words: str, wanted: Sequence[Word], to: Reader) -> list[Campaign]:
    """Those that PostgreSQL finds; a version is looked for in the campaigns that vary it."""
    letters = [word.text for word in wanted if not word.is_version]
    matching_campaigns = candidates.campaigns(
        " ".join(letters), reader=to, number=MOST_RANKED
    )
    if any(word.is_version for word in wanted):
        tokens = [
            search_words.version_token(word.text) for word in wanted if word.is_version
        ]
        return [
            campaign
            for campaign in matching_campaigns
            if set(tokens)
            <= {search_words.version_token(major) for major in _majors(campaign)}
        ]
    return list(matching_campaigns)


def _find_some(wanted: Sequence[Word], to: Reader) -> list[Campaign]:
    """Those that have one of the words at least."""
    campaign_of_key: dict[int, Campaign] = {}
    for word in wanted:
        for campaign in candidates.campaigns(
            word.text, reader=to, number=MOST_RANKED // 4
        ):
            campaign_of_key[campaign.pk] = campaign
    return list(campaign_of_key.values())


def _said(campaigns: Collection[Campaign]) -> dict[int, Said]:
    """What these campaigns say. One query."""
    tables = PublishedTable.objects.filter(
        campaign__in=[campaign.pk for campaign in campaigns]
    )
    printed = {table.campaign_id: table for table in tables.only(*SAID)}
    return {
        campaign.pk: _describe(campaign, printed.get(campaign.pk))
        for campaign in campaigns
    }


def _describe(campaign: Campaign, printed: PublishedTable | None) -> Said:
    questions = printed.asked if printed else {}
    findings = printed.findings if printed else []
    factors = [
        str(part)
        for name, levels in campaign.factors.items()
        for part in (name, *levels)
    ]
    conclusions = [str(text) for finding in findings for text in finding.values()]
    texts = (
        (TITLE, f"{campaign.title} {campaign.title_ja}"),
        (QUESTION, f"{campaign.question} {' '.join(map(str, questions.values()))}"),
        (ANSWER, " ".join(conclusions)),
        (THEME, f"{campaign.scenario.title} {campaign.scenario.slug}"),
        (FACTOR, f"{printed.number} {printed.section}" if printed else ""),
        (FACTOR, " ".join(factors)),
        (NAME, re.sub(r"\b(19|20)\d\d\b", " ", campaign.slug.replace("-", " "))),
        (ELSEWHERE, f"{campaign.year or ''} {campaign.slug}"),
    )
    folded = tuple((weight, search_words.normal(text)) for weight, text in texts)
    return Said(folded, _majors(campaign), ASKED if questions else 0.0)


def _majors(campaign: Campaign) -> frozenset[str]:
    return frozenset(
        major
        for version in campaign.factors.get("version", ())
        if (major := versions.major(str(version)))
    )
