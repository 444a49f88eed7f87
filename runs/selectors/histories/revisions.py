"""Revisions of a campaign's history, in the order in which they were made."""

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Coalesce

from runs.models import Campaign, Cell, Revision

# A commit without a date stands where its first upload came.
MADE_AT = Coalesce("committed_at", "created_at")
SHORTEST_SHA = 4


class UnknownRevision(ValueError):
    """The campaign has no such revision, or several begin like this; the message is its code."""


def measured(campaign: Campaign) -> QuerySet[Revision]:
    """The revisions that a campaign has cells of, the newest first, as `made_at` says."""
    cells = Cell.objects.filter(campaign=campaign, revision=OuterRef("pk"))
    return (
        Revision.objects.filter(Exists(cells))
        .annotate(made_at=MADE_AT)
        .order_by(MADE_AT.desc(), "-pk")
    )


def tracked(campaign: Campaign) -> QuerySet[Revision]:
    """Those of the branch that makes the history; all, where the campaign names none."""
    found = measured(campaign)
    return found.filter(ref=campaign.tracked_ref) if campaign.tracked_ref else found


def newest(campaign: Campaign) -> Revision | None:
    """The newest revision of the history."""
    return tracked(campaign).first()


def before(campaign: Campaign, revision: Revision) -> Revision | None:
    """The one of the history before a revision, which need not be of the history itself."""
    others = tracked(campaign).exclude(pk=revision.pk)
    at = revision.committed_at or revision.created_at
    return others.filter(made_at__lte=at).first()  # type: ignore[misc]  # annotated above


def named(campaign: Campaign, text: str) -> Revision:
    """The revision of that sha, or of one that begins so, else the newest of that branch or tag.

    Raises UnknownRevision `unknown_revision` or `ambiguous_revision`. At most two queries.
    """
    if len(text) >= SHORTEST_SHA:
        found = list(measured(campaign).filter(sha__startswith=text.lower())[:2])
        if len(found) == 1 or (found and found[0].sha == text.lower()):
            return found[0]
        if found:
            raise UnknownRevision("ambiguous_revision")
    of_ref = measured(campaign).filter(ref=text).first()
    if of_ref is None:
        raise UnknownRevision("unknown_revision")
    return of_ref
