"""When a revision was made, which is its place in a history; its arrival here does not count."""

from datetime import datetime

from django.db.models import Min, OuterRef, Subquery
from django.db.models.functions import Coalesce

from runs.models import Revision, Run


def made_at(path: str = "") -> Coalesce:
    """When the revision at the path was committed; else when the first run of it began.

    `created_at` stands for a revision without any run only. The runs are looked for where a commit
    has no date.
    """
    own = OuterRef(f"{path}_id" if path else "pk")
    runs = Run.objects.filter(cell__revision=own).order_by().values("cell__revision")
    first = Subquery(runs.annotate(at=Min("started_at")).values("at"))
    name = f"{path}__" if path else ""
    return Coalesce(f"{name}committed_at", first, f"{name}created_at")


def of(revision: Revision) -> datetime:
    """The same of one revision. One query, none where the commit has a date."""
    if revision.committed_at is not None:
        return revision.committed_at
    found = Revision.objects.annotate(at=made_at()).values_list("at", flat=True)
    moment: datetime = found.get(pk=revision.pk)
    return moment
