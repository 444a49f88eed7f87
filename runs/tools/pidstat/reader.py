"""Reading `pidstat -u -d 1` of sysstat 9 to 12, also with -h and -l: programs by their names.

Resident memory is left out: processes of PostgreSQL share most of it.
"""

from collections.abc import Iterator

from runs.tools import sysstat_tables
from runs.tools.host_reading import HostReading, device_column

NAME = "pidstat"
_COLUMNS = {
    "process_cpu": "%CPU",
    "process_read": "kB_rd/s",
    "process_write": "kB_wr/s",
}


def read(text: str) -> HostReading:
    """Read the samples, those of the processes of one program together.

    Raises UnreadableOutput `not_pidstat_output`.
    """
    return sysstat_tables.read(
        NAME, text, _values, absent=0.0
    )  # it lists who did something


def _values(cells: sysstat_tables.Cells) -> Iterator[tuple[str, float]]:
    command = cells.get("Command")
    if not command or command.startswith("|__"):  # a thread, which its process counts
        return
    # `postgres: app shop [local] idle` is of postgres.
    program = command.split(maxsplit=1)[0].rpartition("/")[2].rstrip(":")
    for name, key in _COLUMNS.items():
        value = sysstat_tables.number(cells, key)
        if value is not None:
            yield device_column(name, program), value
