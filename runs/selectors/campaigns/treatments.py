"""What was done to the machines of a campaign, in words."""

from django.utils.translation import gettext as _

from runs.execution.machine.treatment import Treatment
from runs.models import Campaign


def told(campaign: Campaign) -> list[tuple[str, str]]:
    """(title, text) of each part of its treatment; empty for a campaign without one."""
    treatment = Treatment.of(campaign.treatment)
    rows = [
        (_("Caches"), _("emptied before each measurement") if treatment.cold_cache else ""),
        (_("CPU governor"), treatment.governor),
        (_("CPUs of the server"), treatment.server_cpus),
        (_("CPUs of pgbench"), treatment.pgbench_cpus),
        (_("Profile"), _("by perf, while the load is on") if treatment.profile else ""),
    ]
    taken = [
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
    rows.append((_("Evidence"), ", ".join(taken)))
    return [(title, text) for title, text in rows if text]
