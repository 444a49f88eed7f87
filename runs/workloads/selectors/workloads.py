"""Workloads with their versions, and the campaigns that ran them."""

from collections.abc import Sequence

from django.db.models import Count, Exists, Max, OuterRef, QuerySet
from django.utils.translation import gettext as _

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.execution.machine.treatment import Treatment
from runs.models import Campaign, Cell, Workload, WorkloadVersion


def treatment_rows(campaign: Campaign) -> list[tuple[str, str]]:
    """(title, text) of each part of its treatment; empty for a campaign without one."""
    treatment = Treatment.of(campaign.treatment)
    rows = [
        (
            _("Caches"),
            _("emptied before each measurement") if treatment.cold_cache else "",
        ),
        (_("CPU governor"), treatment.governor),
        (_("CPUs of the server"), treatment.server_cpus),
        (_("CPUs of pgbench"), treatment.pgbench_cpus),
        (_("Profile"), _("by perf, while the load is on") if treatment.profile else ""),
    ]
    evidence_titles = [
        title
        for title, is_taken in (
            (_("wait events"), treatment.waits),
            ("pg_stat_statements", treatment.statements),
            ("pg_stat_io", treatment.io),
            (_("system calls"), treatment.syscalls),
            (_("stacks of semaphores"), treatment.stacks),
            (_("instructions"), treatment.instructions),
        )
        if is_taken
    ]
    rows.append((_("Evidence"), ", ".join(evidence_titles)))
    return [(title, text) for title, text in rows if text]


# More than anybody needs to choose from.
MOST_OFFERED = 200


def listed(*, to: Reader) -> QuerySet[Workload]:
    """The workloads that the reader may see by name, with `newest` (number) and `version_count`."""
    counted = Workload.objects.annotate(
        newest=Max("versions__number"), version_count=Count("versions")
    )
    return projects.visible(counted.order_by("name", "pk"), to=to)


def offered(*, in_project: int | None) -> list[WorkloadVersion]:
    """The versions that a campaign of the project may have, the newest of each workload first."""
    versions = WorkloadVersion.objects.select_related("workload")
    workload_versions = projects.usable(versions, in_project=in_project)
    return list(
        workload_versions.order_by("workload__name", "workload_id", "-number")[
            :MOST_OFFERED
        ]
    )


def seen(levels: Sequence[str], *, to: Reader) -> set[str]:
    """Those of levels such as `slug@3` whose version the reader may see. One query, or none."""
    slugs = [level.partition("@")[0] for level in levels]
    workload_versions = WorkloadVersion.objects.filter(
        workload__slug__in=slugs
    ).select_related("workload")
    return (
        {
            str(workload_version)
            for workload_version in projects.visible(workload_versions, to=to)
        }
        if slugs
        else set()
    )


def history(workload: Workload) -> Sequence[WorkloadVersion]:
    """All versions of a workload, the newest first."""
    return list(workload.versions.select_related("created_by").order_by("-number"))


def used_by(workload: Workload, *, to: Reader, limit: int) -> list[Campaign]:
    """The newest campaigns that ran a version of it, as far as the reader may see them."""
    # By their keys, of which PostgreSQL knows how many cells have each: it begins at the newest
    # campaigns, or, where few cells have them, at those.
    versions = list(workload.versions.order_by().values_list("pk", flat=True))
    ran = Cell.objects.filter(campaign=OuterRef("pk"), workload_version__in=versions)
    visible_campaigns = projects.visible(
        Campaign.objects.filter(Exists(ran.order_by())), to=to
    )
    return list(visible_campaigns.order_by("-pk")[:limit])
