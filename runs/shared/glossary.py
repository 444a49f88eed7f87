"""The words that pages use, each in one sentence."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Term:
    """A word of this site in one sentence. `slug` is its place on the page of help."""

    slug: str
    word: str | Promise
    meaning: str | Promise


TERMS = (
    Term(
        "campaign",
        _("Campaign"),
        _("One question put to one or more servers, with all runs that answer it."),
    ),
    Term(
        "cell",
        _("Cell"),
        _(
            "One combination of what a campaign varies, such as PostgreSQL 17 with 64 clients."
        ),
    ),
    Term(
        "run",
        _("Run"),
        _(
            "One measurement of one cell, kept with its settings, its log and the state of the "
            "machine."
        ),
    ),
    Term(
        "certificate",
        _("Certificate"),
        _("A record of how quiet the machine was before, during and after a run."),
    ),
    Term(
        "doubtful",
        _("Doubtful"),
        _("Something disturbed this run a little; it counts, and is drawn hollow."),
    ),
    Term(
        "invalid",
        _("Invalid"),
        _(
            "This run is left out, and its page says why; a maintainer can include it, with a "
            "reason."
        ),
    ),
    Term(
        "series",
        _("Series"),
        _(
            "The same cell measured again and again, commit after commit or year after year."
        ),
    ),
    Term(
        "line",
        _("Line"),
        _(
            "Versions measured on the same machine; only these are joined, and only their steps "
            "are multiplied."
        ),
    ),
    Term(
        "change",
        _("Change of level"),
        _(
            "A place in a series where the level moved and stayed there, and further runs found "
            "the same."
        ),
    ),
    Term(
        "observation",
        _("Observation"),
        _(
            "The same question put to all versions of one machine, measured again each year as "
            "an edition with its report."
        ),
    ),
    Term(
        "interval",
        _("Interval"),
        _(
            "All ratios that fit what was measured; if 1 is among them, nobody can say which side "
            "is faster."
        ),
    ),
)


def term(slug: str) -> Term:
    """The term of that slug. Raises KeyError."""
    return _BY_SLUG[slug]


_BY_SLUG = {known_term.slug: known_term for known_term in TERMS}
