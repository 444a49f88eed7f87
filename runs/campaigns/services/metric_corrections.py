"""A project's metrics are corrected: unit, direction and title."""

from django.db import transaction
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.models import Measurement, Metric, Seal
from runs.seals.services import seals
from runs.shared.errors import ServiceError

# Each run gets an entry in the chain of seals, in the transaction that corrects the metric.
MOST_SEALED = 2000


@transaction.atomic
def correct(*, metric: Metric, unit: str, direction: str, title: str) -> Metric:
    """Correct what a project said of its metric; figures stay. Runs that are sealed are amended.

    Raises ServiceError `shared_metric`, and `too_many_runs` beyond MOST_SEALED sealed ones.
    """
    stored = Metric.objects.select_for_update().get(pk=metric.pk)
    if stored.project_id is None:
        message = _("The metric %(name)s is shared by all projects.") % {
            "name": stored.name
        }
        raise ServiceError(
            "shared_metric", message, remedy=_("Upload yours by another name.")
        )
    before = {"unit": stored.unit, "direction": stored.direction, "title": stored.title}
    after = {"unit": unit, "direction": direction, "title": title or stored.name}
    if before == after:
        return stored
    sealed = _sealed(stored)
    Metric.objects.filter(pk=stored.pk).update(**after)
    for run in sealed:
        seals.request(
            run=run,
            kind=Seal.Kind.AMENDED,
            reason=f"metric {stored.name} was corrected",
        )
    subject = f"metric {stored.name}"
    audit.record(
        "metric_changed", subject, project=stored.project_id, before=before, after=after
    )
    stored.refresh_from_db()
    return stored


def _sealed(metric: Metric) -> list[int]:
    runs = Measurement.objects.filter(metric=metric).order_by().values("run").distinct()
    seals_of_runs = (
        Seal.objects.filter(run__in=runs).order_by("run").values_list("run", flat=True)
    )
    sealed = list(seals_of_runs.distinct()[: MOST_SEALED + 1])
    if len(sealed) > MOST_SEALED:
        message = _("More than %(most)d sealed runs have this metric.") % {
            "most": MOST_SEALED
        }
        remedy = _(
            "Upload further runs by another name, with the right unit and direction."
        )
        raise ServiceError("too_many_runs", message, remedy=remedy)
    return sealed
