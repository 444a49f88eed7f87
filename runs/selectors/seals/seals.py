"""The entries of a run in its project's chain."""

from runs.models import Seal


def of_run(run_id: int) -> list[Seal]:
    """What the chain says about a run, the newest first; empty while it waits. One query."""
    entries = Seal.objects.filter(run=run_id).select_related("project").order_by("-number")
    return list(entries.defer("content"))
