"""The finished runs behind cells, and the conditions that they ran under."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Min, Q

from runs.models import Run
from runs.models.runs import SUMMARY_REPEAT


@dataclass(frozen=True)
class CellRuns:
    """The finished runs of a cell: their conditions, keys and programs.

    `hardware`, `environment` and `settings` are keys of stored rows, ascending; usually one each.
    `doubtful` runs are included in the count.
    """

    count: int = 0
    first: int | None = None
    hardware: tuple[int, ...] = ()
    environment: tuple[int, ...] = ()
    settings: tuple[int, ...] = ()
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    doubtful: int = 0


def of_cells(cell_ids: Collection[int]) -> dict[int, CellRuns]:
    """The finished runs of these cells, by cell. One query."""

    def distinct(name: str) -> ArrayAgg:
        return ArrayAgg(name, distinct=True, filter=Q(**{f"{name}__isnull": False}), default=[])

    rows = (
        Run.objects.filter(cell__in=cell_ids, state=Run.State.FINISHED)
        .order_by()
        .values("cell_id")
        .annotate(
            # A printed summary of printed repeats is not a run of its own.
            count=Count("pk", filter=~Q(repeat=SUMMARY_REPEAT)),
            first=Min("pk"),
            on_hardware=distinct("hardware"),
            in_environment=distinct("environment"),
            with_settings=distinct("settings"),
            servers=distinct("server_version"),
            tools=distinct("tool_version"),
            names=distinct("tool_name"),
            doubtful=Count("pk", filter=Q(validity__in=Run.DOUBTED)),
        )
    )
    return {
        row["cell_id"]: CellRuns(
            count=row["count"],
            first=row["first"],
            hardware=tuple(row["on_hardware"]),
            environment=tuple(row["in_environment"]),
            settings=tuple(row["with_settings"]),
            servers=tuple(filter(None, row["servers"])),
            tools=_tools(row["names"], row["tools"]),
            doubtful=row["doubtful"],
        )
        for row in rows
    }


def _tools(names: Iterable[str], numbers: Iterable[str]) -> tuple[str, ...]:
    name = ", ".join(filter(None, names))
    return tuple(f"{name} {number}".strip() for number in numbers if name or number)
