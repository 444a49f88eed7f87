"""What readers ask most, answered by a published table: by how much, on what, how certain."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Subquery
from django.utils.translation import gettext as _

from runs.compare.selectors.describe.verdict_words import printed_size
from runs.models import HardwareProfile, PublishedNode, PublishedTable, Run
from runs.models.measurements import Statistic
from runs.shared.formats import named, publication, spoken

# By how much, or how many times.
FIGURE = re.compile(r"\d[\d.,]{0,20}+ ?(?:%|times)")


@dataclass(frozen=True)
class Answer:
    """A question of readers, and the table that answers it.

    `asked` has the question in both languages, and in `yes_if` which ratios ("less" or "more" than
    1) mean yes, where it does not ask for a size. `ratios` are printed, the machine only if it is;
    `has_spread` says whether the publication prints more than one run.
    """

    campaign: str
    source: str
    asked: Mapping[str, str]
    ratios: Sequence[float]
    repeats: int | None
    statistic: str
    has_spread: bool
    machine: str | None
    machine_ja: str | None
    findings: Sequence[Mapping[str, str]] = ()

    @property
    def publication(self) -> str:
        """What people call it, without the title's subject: WG1 2021."""
        return publication(self.source)

    @property
    def text(self) -> str:
        """The answer itself: "Yes, as printed: 2.0 to 5.6 % slower".

        Without each run nothing is tested: then it is what is printed, and says so. A question for
        a size is answered by the conclusions that have figures: from the least to the greatest of
        a table mixes what is asked with all else that it varies.
        """
        size = self._size
        if not (word := self._word):
            return self._concluded or size
        if self.has_spread:
            return f"{word}: {size}"
        return _("%(word)s, as printed: %(size)s") % {"word": word, "size": size}

    @property
    def basis(self) -> str:
        """Where it was measured, who says so, and how certain it is."""
        hardware = HardwareProfile(
            name=self.machine or "", name_ja=self.machine_ja or ""
        )
        machine = named(hardware) if self.machine else _("hardware not printed")
        return f"{machine} · {self.publication} · {self.certainty}"

    @property
    def certainty(self) -> str:
        """How often was measured, and whether the spread of it is printed."""
        return certainty(self.repeats, self.statistic, has_spread=self.has_spread)

    @property
    def _size(self) -> str:
        """From the least to the greatest: a line through versions shows one of them."""
        if not self.ratios:
            return "–"
        size = printed_size(self.ratios, "higher")
        if min(self.ratios) == max(self.ratios):
            return size
        return _("%(size)s, over all conditions of its table") % {"size": size}

    @property
    def _concluded(self) -> str:
        """The first conclusion with a figure of the publication, and of BenchLab; else empty."""
        first_of: dict[str, str] = {}
        for finding in self.findings:
            if FIGURE.search(finding.get("en", "")):
                first_of.setdefault(finding.get("by", "publication"), spoken(finding))
        parties = (first_of.get("publication"), first_of.get("benchlab"))
        return " ".join(text for text in parties if text)

    @property
    def _word(self) -> str:
        if not self.asked.get("yes_if") or not self.ratios:
            return ""
        least, greatest = min(self.ratios), max(self.ratios)
        if least < 1 < greatest:
            return _("Not in general")
        return (
            _("Yes") if (greatest <= 1) == (self.asked["yes_if"] == "less") else _("No")
        )


def certainty(repeats: int | None, statistic: str, *, has_spread: bool) -> str:
    """How often a publication measured, and whether it prints the spread: "medians of 3, ..."."""
    if not repeats:
        return _("number of runs not printed")
    if repeats == 1:
        return _("single runs")
    runs = {
        Statistic.MEDIAN.value: _("medians of %(n)s"),
        Statistic.MEAN.value: _("means of %(n)s"),
    }.get(statistic, _("%(n)s runs each"))
    spread = _("each run printed") if has_spread else _("spread not printed")
    return _("%(runs)s, %(spread)s") % {"runs": runs % {"n": repeats}, "spread": spread}


def answers() -> list[Answer]:
    """What is asked most, of the newest publication first. One query."""
    machines = PublishedNode.objects.filter(
        table=OuterRef("pk"), role="database", hardware__isnull=False
    ).order_by("ordinal")
    again = Run.objects.filter(campaign=OuterRef("campaign"), repeat__gt=1)
    tables_asked = PublishedTable.objects.exclude(asked={}).annotate(
        machine=Subquery(machines.values("hardware__name")[:1]),
        machine_ja=Subquery(machines.values("hardware__name_ja")[:1]),
        has_spread=Exists(again),
    )
    rows = tables_asked.order_by("-source__year", "source", "ordinal").values_list(
        "campaign__slug",
        "source__slug",
        "asked",
        "answer",
        "repeats",
        "statistic",
        "has_spread",
        "machine",
        "machine_ja",
        "findings",
    )
    return [Answer(*row) for row in rows]


def answer_of(table: PublishedTable) -> Answer | None:
    """The answer that a table gives, if readers ask for it. One query, none without a question."""
    if not table.asked:
        return None
    slug = table.campaign.slug
    return next(
        (
            answer_of_table
            for answer_of_table in answers()
            if answer_of_table.campaign == slug
        ),
        None,
    )
