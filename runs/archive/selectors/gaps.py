"""What the archive lacks of the yearly series: which report would add it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from runs.models import PublishedTable, Source
from runs.wording import gettext_noop as _

# The fiscal years of the series by the version that was new: each compares it with the one before.
FISCAL_YEARS = {
    "9.2": 2012,
    "9.3": 2013,
    "9.4": 2014,
    "9.5": 2015,
    "9.6": 2016,
    "10": 2017,
    "11": 2018,
    "12": 2019,
    "13": 2020,
    "14": 2021,
    "15": 2022,
    "16": 2023,
    "17": 2024,
    "18": 2025,
}
# What the names of its publications begin with.
SERIES = "wg1-"
# The first year in which the series observed updates too.
UPDATES_SINCE = 2014
# What else a year's report has, where a publication of the archive says so: the report for 2017 in
# its section 3.4.1, the slides of 2021 of the updates of 2020.
OTHER_THEMES = {
    2014: _("PostgreSQL in virtual machines (KVM) and containers (Docker)"),
    2015: _("BRIN indexes, parallel vacuum, Red Hat Enterprise Linux 6 against 7"),
    2016: _("parallel query, vacuum, scale-out of Pgpool-II, JSON and JSONB"),
    2020: _("updates with up to 192 clients, which was not the limit"),
}
FIGURES, PICTURE, NOTHING = _("figures"), _("picture"), _("nothing")
THEMES = ("fixed-point-read", "fixed-point-update")


@dataclass(frozen=True)
class Gap:
    """A step between two versions and what there is of it: figures, picture or nothing.

    `reading` and `updating` are the two observations of the series; `slug` is what a transcription
    of that year's report would be called, as those in the archive are. `others` names its other
    themes, as far as publications of the archive do. `is_here` says that the archive has the
    publication, which shows this step in pictures only.
    """

    year: int
    base: str
    head: str
    reading: str
    updating: str
    others: str
    is_here: bool

    @property
    def slug(self) -> str:
        """The name of that year's publication."""
        return f"{SERIES}{self.year}"


def gaps() -> list[Gap]:
    """The steps of which reading or updating has no figures. Two queries."""
    here = set(Source.objects.values_list("slug", flat=True))
    rows = list(
        PublishedTable.objects.filter(campaign__scenario__slug__in=THEMES).values_list(
            "campaign__scenario__slug", "versions", "has_figures"
        )
    )
    gaps_found = []
    for base, head in pairwise(FISCAL_YEARS):
        reading, updating = (
            _known(
                [(versions, has) for slug, versions, has in rows if slug == theme],
                base,
                head,
            )
            for theme in THEMES
        )
        year = FISCAL_YEARS[head]
        if reading != FIGURES or (updating != FIGURES and year >= UPDATES_SINCE):
            other_theme, is_here = OTHER_THEMES.get(year, ""), f"{SERIES}{year}" in here
            gaps_found.append(
                Gap(year, base, head, reading, updating, other_theme, is_here)
            )
    return gaps_found


def traces() -> list[Mapping[str, Any]]:
    """The addresses that lead towards reports of the series, each once."""
    traces_of_sources = Source.objects.filter(slug__startswith=SERIES).values_list(
        "traces", flat=True
    )
    return list(
        {
            trace["url"]: trace
            for traces_of_source in traces_of_sources
            for trace in traces_of_source
        }.values()
    )


def _known(rows: Collection[tuple[list[str], bool]], base: str, head: str) -> str:
    figures_of_both = [
        has_figures for versions, has_figures in rows if {base, head} <= set(versions)
    ]
    if not figures_of_both:
        return NOTHING
    return FIGURES if any(figures_of_both) else PICTURE
