"""Editions of observations: what the newest says, and what the anchor says of the machine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.access.selectors.projects import Reader, visible
from runs.analysis.contrasts import Contrast
from runs.analysis.inference import SIGNIFICANCE
from runs.analysis.inference.verdicts import (
    DEFAULT_EFFECT,
    PROVEN,
    Direction,
    Rule,
    Verdict,
)
from runs.analysis.judged_runs import NOT_JUDGED, Judged
from runs.analysis.summary import Summary
from runs.archive.selectors import version_line
from runs.archive.selectors.version_line import Line
from runs.archive.selectors.version_summaries import ByVersion, mean, read_summaries
from runs.campaigns.selectors import campaigns, sentences
from runs.campaigns.selectors.campaigns import Progress
from runs.campaigns.selectors.sentences import Sentence
from runs.cells.selectors import metrics, versions
from runs.compare.selectors.describe.verdict_words import VERDICTS, printed_size
from runs.grouping import group_by_key
from runs.models import Campaign, Cell, Edition, Metric, Observation
from runs.observations.selectors import remarks
from runs.queue.selectors import certificate_words
from runs.servers.selectors import builds

NOTHING = Sentence("", is_proven=False)
MOST_OTHERS = 50


@dataclass(frozen=True)
class Part:
    """What one campaign of an edition says: the steps between versions, and its line.

    `total` is the sentence of the newest version against the oldest. `decided` are the sentences of
    the steps that have a verdict of a difference, `others` those of the rest, `remarks` what one
    has to know besides.
    """

    campaign: Campaign
    metric: Metric | None
    progress: Progress
    total: str
    decided: Sequence[str]
    others: Sequence[str]
    remarks: Sequence[str] = ()

    @property
    def sentences(self) -> list[str]:
        """All of them but the remarks."""
        return [*([self.total] if self.total else []), *self.decided, *self.others]

    @cached_property
    def line(self) -> Line:
        """The chain through its versions."""
        return version_line.build_campaign_line(self.campaign)


@dataclass(frozen=True)
class VersionAgain:
    """A version in two editions: itself, against the anchor in both, and the ratio of both ratios.

    `direct` has in it what changed of the machine; `change` has not, and its interval is that of
    the repeats alone, together with those of the other versions. `is_same_build`: both editions
    measured the same release, built alike. `is_attributed`: what changes may be the version's.
    `judged` is what certificates say of the runs of the four sides.
    """

    version: str
    direct: Contrast
    before: Contrast
    now: Contrast
    change: Contrast
    direction: Direction
    is_same_build: bool = False
    is_attributed: bool = True
    judged: Sequence[Judged] = ()

    @property
    def verdict(self) -> Verdict:
        """What the interval says of the change beyond the machine's, whosever it is."""
        low, high = self.change.low, self.change.high
        if low is None or high is None:
            return "too_few_runs"
        return Rule(self.direction).word(math.log(low), math.log(high))

    @property
    def is_proven(self) -> bool:
        """Whether the version is sure to have changed."""
        return (
            self.verdict in PROVEN
            and self.is_attributed
            and not self._was_machine_taken
        )

    @property
    def word(self) -> str:
        """What the change is, and doubts about its runs: what is not proven is no change."""
        mark = certificate_words.mark(Judged.total(self.judged))
        return " ".join(filter(None, (self._word, mark)))

    @property
    def _word(self) -> str:
        if self._was_machine_taken:
            return _("the machine was not free")
        if self.verdict not in PROVEN or self.is_attributed:
            return str(VERDICTS[self.verdict])
        if self.is_same_build:
            return _("not the version's: its build is the same in both")
        return str(VERDICTS["undecided"])

    @property
    def _was_machine_taken(self) -> bool:
        return any(judged.was_machine_taken for judged in self.judged)


@dataclass(frozen=True)
class Again:
    """A design measured in two editions: the anchor's own change, and each other version's.

    The other edition is one of another observation where two machines, systems or arrangements are
    compared. `anchors` are its release and build, now and before; `lost` the versions without a
    figure now. `is_same_machine`: both have the same record of hardware and system.
    """

    campaign: Campaign
    now: Edition
    before: Edition
    anchor: str
    anchors: tuple[str, str]
    lost: Sequence[str]
    conditions: int
    drift: Contrast
    others: Sequence[VersionAgain]
    is_same_machine: bool
    direction: Direction

    @property
    def sentence(self) -> str:
        """What the anchor says of the machine, in the reader's language."""
        here, other_name = self.names
        values: dict[str, object] = {
            "anchor": self.anchor,
            "edition": other_name,
            "here": here,
        }
        drift = self.drift
        if drift.low is None or drift.high is None:
            values["size"] = printed_size([drift.ratio], self.direction)
            text = _(
                "The anchor %(anchor)s against %(edition)s: %(size)s; without repeats, no interval."
            )
            return text % values
        values["size"] = printed_size([drift.low, drift.high], self.direction)
        if self.anchors[0] != self.anchors[1]:
            values |= {"now": self.anchors[0], "before": self.anchors[1]}
            text = _(
                "The anchor is another one (%(now)s; in %(edition)s %(before)s) and against that "
                "%(size)s: what is the machine's of it is not known."
            )
            return text % values
        if drift.is_same:
            values["effect"] = f"{DEFAULT_EFFECT:g} %"
            text = _(
                "The anchor %(anchor)s is as fast as in %(edition)s, within %(effect)s: %(size)s."
            )
            return text % values
        if not drift.is_apart:
            text = _(
                "Undecided whether the machine has changed: the anchor %(anchor)s is %(size)s "
                "against %(edition)s. Compare versions by their ratios within an edition."
            )
            return text % values
        if self.is_of_two:
            text = _(
                "With the anchor %(anchor)s, %(here)s is %(size)s than %(edition)s. What a version "
                "gains or loses beyond that is its own."
            )
            return text % values
        text = _(
            "The anchor %(anchor)s is %(size)s than in %(edition)s: the machine has changed. "
            "Compare versions by their ratios within an edition."
        )
        return text % values

    @property
    def remarks(self) -> list[str]:
        """What else differs between both."""
        texts = []
        if not self.is_same_machine:
            texts.append(
                _("The record of the machine or of its system is another one.")
            )
        if self.lost:
            text = _(
                "Measured in %(edition)s and without a figure in %(here)s: %(versions)s."
            )
            here, other_name = self.names
            versions = ", ".join(self.lost)
            texts.append(
                text % {"edition": other_name, "here": here, "versions": versions}
            )
        return texts

    @property
    def is_of_two(self) -> bool:
        """Whether two observations are compared, and not two editions of one."""
        return self.now.observation_id != self.before.observation_id

    @property
    def names(self) -> tuple[str, str]:
        """What the edition and the other one are called beside each other."""
        if not self.is_of_two:
            return self.now.label, self.before.label
        here, other_observation = self.now.observation, self.before.observation
        if here.server_id != other_observation.server_id:
            return here.server.name, other_observation.server.name
        return f"{here} {self.now.label}", f"{other_observation} {self.before.label}"


def listed(*, to: Reader) -> QuerySet[Observation]:
    """The observations that a reader may see, the newest first."""
    observations = visible(Observation.objects.all(), to=to)
    return observations.select_related("server", "project").prefetch_related("editions")


def parts(edition: Edition) -> list[Part]:
    """Each campaign of an edition. Some ten queries a campaign."""
    return [_part(campaign) for campaign in _campaigns(edition)]


def others(edition: Edition, *, to: Reader) -> list[Edition]:
    """The editions that it can be compared with, of all observations that share a scenario."""
    visible_observations = visible(Observation.objects.all(), to=to)
    editions = Edition.objects.filter(observation__in=visible_observations).exclude(
        pk=edition.pk
    )
    scenarios = {design["scenario"] for design in edition.observation.designs}
    newest = editions.select_related("observation__server").order_by("-pk")[
        :MOST_OTHERS
    ]
    return [
        edition
        for edition in newest
        if scenarios
        & {own_design["scenario"] for own_design in edition.observation.designs}
    ]


def again(edition: Edition, before: Edition | None = None) -> list[Again]:
    """What each design says against another edition, by default the one before it.

    Nothing for the first. Eight queries each.
    """
    if before is None:
        earlier = edition.observation.editions.filter(pk__lt=edition.pk).order_by("-pk")
        before = earlier.first()
    if before is None:
        return []
    of_before = {campaign.scenario_id: campaign for campaign in _campaigns(before)}
    answers_of_campaigns = (
        _again(edition, before, of_before[campaign.scenario_id], campaign)
        for campaign in _campaigns(edition)
        if campaign.scenario_id in of_before
    )
    return [again for again in answers_of_campaigns if again is not None]


def _campaigns(edition: Edition) -> QuerySet[Campaign]:
    return edition.campaigns.select_related("scenario", "topology").order_by("pk")


def _part(campaign: Campaign) -> Part:
    total, *steps = sentences.made(campaign) or [NOTHING]
    return Part(
        campaign,
        metrics.primary(campaign),
        campaigns.progress(campaign),
        total.text,
        [sentence.text for sentence in steps if sentence.is_proven],
        [sentence.text for sentence in steps if not sentence.is_proven],
        remarks.list_remarks(campaign),
    )


def _again(
    edition: Edition,
    before: Edition,
    earlier_campaign: Campaign,
    later_campaign: Campaign,
) -> Again | None:
    """None where they share no condition of the anchor."""
    metric, anchor = metrics.primary(later_campaign), edition.observation.anchor
    if metric is None:
        return None
    was, now = (
        read_summaries(campaign, metric.name)
        for campaign in (earlier_campaign, later_campaign)
    )
    shared = sorted(was.get(anchor, {}).keys() & now.get(anchor, {}).keys())
    drift = mean(
        [(1, now[anchor][condition]), (-1, was[anchor][condition])]
        for condition in shared
    )
    if drift is None:
        return None
    direction = cast(Direction, metric.direction)
    compared = sorted(was.keys() & now.keys() - {anchor}, key=versions.order)
    # All intervals of the table hold together.
    significance = -math.expm1(math.log1p(-SIGNIFICANCE) / max(1, len(compared)))
    version_answers = (
        _version(was, now, anchor, version, direction, significance)
        for version in compared
    )
    same = _machines(earlier_campaign) == _machines(later_campaign)
    builds_of = (_builds(later_campaign), _builds(earlier_campaign))
    judged_of = _judge((earlier_campaign, later_campaign))
    known_answers = [
        replace(
            version_answer,
            judged=[
                of_campaign[version]
                for of_campaign in judged_of
                for version in (anchor, version_answer.version)
            ],
        )
        for version_answer in version_answers
        if version_answer is not None
    ]
    anchors = (builds_of[0].get(anchor, anchor), builds_of[1].get(anchor, anchor))
    lost = sorted(was.keys() - now.keys(), key=versions.order)
    return Again(
        later_campaign,
        edition,
        before,
        anchor,
        anchors,
        lost,
        len(shared),
        drift,
        _attribute(
            known_answers,
            builds_of,
            anchor,
            is_of_two=edition.observation_id != before.observation_id,
        ),
        same,
        direction,
    )


def _machines(campaign: Campaign) -> list[tuple[int | None, ...]]:
    machine_runs = campaigns.machines(campaign)
    return [
        (run.server_id, run.hardware_id, run.environment_id) for run in machine_runs
    ]


def _builds(campaign: Campaign) -> dict[str, str]:
    """The newest release of each version that a campaign measured, and how it was built."""
    return {
        installation.major: ", ".join(
            filter(None, (installation.version, builds.words(installation)))
        )
        for installation in builds.list_installations(campaign).order_by("version_num")
    }


def _judge(campaigns_judged: Sequence[Campaign]) -> list[dict[str, Judged]]:
    """What certificates say of the runs of each version, by campaign. Two queries."""
    cells = Cell.objects.filter(campaign__in=campaigns_judged).exclude(version="")
    places = {
        pk: (campaign, versions.major(version))
        for pk, campaign, version in cells.values_list("pk", "campaign", "version")
    }
    judged_of_cell = certificate_words.judge_cells(places)
    judged = group_by_key(
        (place, judged_of_cell.get(cell, NOT_JUDGED)) for cell, place in places.items()
    )
    return [
        {
            version: Judged.total(of_version)
            for (pk, version), of_version in judged.items()
            if pk == campaign.pk
        }
        for campaign in campaigns_judged
    ]


def _attribute(
    version_answers: Sequence[VersionAgain],
    builds_of: tuple[Mapping[str, str], Mapping[str, str]],
    anchor: str,
    *,
    is_of_two: bool,
) -> list[VersionAgain]:
    """Each with whether a change may be its own.

    Between editions a version whose build is the same cannot have changed: a change of it shows
    that days differ by more than repeats do, and then no other change is sure, either. Nor is one
    where the anchor is another. Between two machines each version may differ by itself.
    """
    now, before = builds_of
    same_builds = {
        version
        for version in now.keys() & before.keys()
        if now[version] == before[version]
    }
    has_moved = not is_of_two and any(
        version_answer.version in same_builds and version_answer.change.is_apart
        for version_answer in version_answers
    )
    is_same_anchor = now.get(anchor) == before.get(anchor)
    return [
        replace(
            version_answer,
            is_same_build=version_answer.version in same_builds,
            is_attributed=is_same_anchor
            and (is_of_two or not (has_moved or version_answer.version in same_builds)),
        )
        for version_answer in version_answers
    ]


def _version(
    was: ByVersion,
    now: ByVersion,
    anchor: str,
    version: str,
    direction: Direction,
    significance: float,
) -> VersionAgain | None:
    shared = set.intersection(
        *(
            set(logs[version_of_pair])
            for logs in (was, now)
            for version_of_pair in (anchor, version)
        )
    )

    def ratio(
        logs: ByVersion, condition: str, sign: int = 1
    ) -> list[tuple[int, Summary]]:
        return [(sign, logs[version][condition]), (-sign, logs[anchor][condition])]

    in_order = sorted(shared)
    before = mean(ratio(was, condition) for condition in in_order)
    after = mean(ratio(now, condition) for condition in in_order)
    change = mean(
        (
            [*ratio(now, condition), *ratio(was, condition, -1)]
            for condition in in_order
        ),
        significance=significance,
    )
    direct = mean(
        [(1, now[version][condition]), (-1, was[version][condition])]
        for condition in in_order
    )
    if before is None or after is None or change is None or direct is None:
        return None
    return VersionAgain(version, direct, before, after, change, direction)
