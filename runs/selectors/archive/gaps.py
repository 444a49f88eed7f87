"""What the archive lacks of the yearly series: which report would add it."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from runs.models import PublishedTable
from runs.wording import gettext_noop as _

# The fiscal years of the series by the version that was new: each compares it with the one before.
FISCAL_YEARS = {
    "9.2": 2012, "9.3": 2013, "9.4": 2014, "9.5": 2015, "9.6": 2016, "10": 2017, "11": 2018,
    "12": 2019, "13": 2020, "14": 2021, "15": 2022, "16": 2023, "17": 2024, "18": 2025,
}  # fmt: skip
FIGURES, PICTURE, NOTHING = _("figures"), _("picture"), _("nothing")
THEMES = ("fixed-point-read", "fixed-point-update")


@dataclass(frozen=True)
class Gap:
    """A step between two versions and what there is of it: figures, picture or nothing.

    `reading` and `updating` are the two observations of the series; `slug` is what a transcription
    of that year's report would be called, as those in the archive are.
    """

    year: int
    base: str
    head: str
    reading: str
    updating: str

    @property
    def slug(self) -> str:
        """The name of that year's publication."""
        return f"wg1-{self.year}"


def gaps() -> list[Gap]:
    """The steps of which reading or updating has no figures. One query."""
    rows = list(
        PublishedTable.objects.filter(campaign__scenario__slug__in=THEMES).values_list(
            "campaign__scenario__slug", "versions", "has_figures"
        )
    )
    found = []
    for base, head in pairwise(FISCAL_YEARS):
        reading, updating = (
            _known([(versions, has) for slug, versions, has in rows if slug == theme], base, head)
            for theme in THEMES
        )
        if (reading, updating) != (FIGURES, FIGURES):
            found.append(Gap(FISCAL_YEARS[head], base, head, reading, updating))
    return found


def _known(rows: Collection[tuple[list[str], bool]], base: str, head: str) -> str:
    both = [has_figures for versions, has_figures in rows if {base, head} <= set(versions)]
    if not both:
        return NOTHING
    return FIGURES if any(both) else PICTURE
