"""What explains a number, taken while the load is on: system calls, stacks, waits, statements, I/O.

Each is a part of the treatment, and is kept as a table of the run (`evidence-NAME.json`); waits are
series as well. strace (`syscalls`, `stacks`) takes half of the throughput, as the report of 2017
has it in 4.8.1: such runs are no measure of anything else. It is attached to the postmaster before
the clients connect, since it follows only what begins later. Nothing recorded costs the run its
evidence only, and is reported with it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Self

from runs.execution.bench import Bench
from runs.execution.evidence.accounting import FLUSHED
from runs.execution.steps.background import Background
from runs.execution.steps.steps import RECORD
from runs.tools import known_metrics
from runs.tools.adapter import SeriesData
from runs.wording import gettext_noop as _

# Files outside of its own folder are read by a server's superuser from 11 on.
WAITS_SINCE, EXEC_TIME_SINCE, IO_SINCE = 110000, 130000, 160000
LIBRARY = "pg_stat_statements"
MOST_ROWS, MOST_FRAMES, MOST_BYTES = 20, 12, 16 * 1024 * 1024
SECONDS_OF_STACKS, WAITS_A_SECOND = 2, 5

_COUNT = """
export LC_ALL=C
command -v strace >/dev/null || exit 127
read -r postmaster <"$1/postmaster.pid"
strace -f -c -S time -o "$2/strace-counts.txt" -p "$postmaster"
"""
# Waits for the first client, then looks at every process that there is for a short time.
_STACKS = """
export LC_ALL=C
command -v strace >/dev/null || exit 127
read -r postmaster <"$1/postmaster.pid"
while ! ps -o args= --ppid "$postmaster" | grep -q "benchlab.*[A-Z]"; do sleep 0.2; done
sleep 1
attach=$(ps -o pid= --ppid "$postmaster" | sed 's/^ */-p /' | tr '\\n' ' ')
timeout -s INT "$3" strace -f -k -e trace=semop,semtimedop,futex $attach \\
    -o "|head -c $4 >$2/strace-stacks.txt"
"""
_ATTACHED = f"""{RECORD}
read -r postmaster <"$1/postmaster.pid"
tries=0 dir=$2
while grep -q '^TracerPid:[[:space:]]*0$' "/proc/$postmaster/status" && [ $tries -lt 100 ]; do
    has_ended && exit 1
    tries=$((tries + 1))
    sleep 0.1
done
"""
_WAITS = """
export LC_ALL=C
pause=$1 query=$2
shift 2
while :; do echo "$query"; sleep "$pause"; done | "$@"
"""

# What reads the counters right after the load waits first, and is none of its sessions.
# A session that was woken keeps its event until it runs again: the kernel's state tells whether it
# sleeps (S, D) or is runnable (R), which is no wait for what the event names.
_WAITS_SQL = rf"""
SELECT extract(epoch FROM now()), coalesce(wait_event_type, 'none'), coalesce(wait_event, 'none'),
    coalesce(substring(pg_read_file('/proc/' || pid || '/stat', 0, 400, true) from '\\) (.)'), '?'),
    count(*)
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND query NOT LIKE '{FLUSHED}%'
GROUP BY 2, 3, 4 UNION ALL SELECT extract(epoch FROM now()), '', '', '', 0;
"""  # noqa: S608
ASLEEP, RUNNABLE = frozenset("SD"), "runnable"


class Evidence:
    """The evidence of one run: `begin` before the load, `stop` right after it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._wanted = bench.plan.treatment
        self._beside: dict[str, Background] = {}

    async def begin(self) -> None:
        """Start what runs during the load, and reset counters."""
        bench, data = self._bench, self._bench.cluster.data
        if self._wanted.statements:
            sql = f"CREATE EXTENSION IF NOT EXISTS {LIBRARY}; SELECT pg_stat_statements_reset();"
            await bench.sql("reset-statements", sql)
        if self._wanted.io:
            await bench.sql("reset-io", "SELECT pg_stat_reset_shared('io');")
        if self._wanted.waits:
            argv = ["sh", "-c", _WAITS, "waits", str(1 / WAITS_A_SECOND), _WAITS_SQL]
            self._begin("waits", [*argv, *bench.cluster.psql()])
        folder = bench.directory
        if self._wanted.syscalls:
            self._begin("syscalls", ["sh", "-c", _COUNT, "syscalls", data, folder])
            step = f"{bench.steps_directory}/syscalls"
            await bench.run("sh", "-c", _ATTACHED, "attached", data, step)
        if self._wanted.stacks:
            limits = [str(SECONDS_OF_STACKS), str(MOST_BYTES)]
            self._begin(
                "stacks", ["sh", "-c", _STACKS, "stacks", data, folder, *limits]
            )

    async def stop(self) -> None:
        """End it, and keep what was found."""
        # What waits printed is a table then; its lines are not kept twice.
        ended = {
            name: await self._bench.recorded(background, partial(self._missing, name))
            for name, background in self._beside.items()
        }
        if (waits := ended.get("waits")) is not None:
            self._keep_waits(waits.stdout)
        for name, read in (("syscalls", calls), ("stacks", stacks)):
            if ended.get(name) is not None:
                await self._keep_traced(name, read)
        if self._wanted.statements:
            rows = await self._rows("read-statements", self._statements_sql())
            self._keep(
                "statements", ("calls", "total_ms", "mean_ms", "rows", "query"), rows
            )
        if self._wanted.io:
            rows = await self._rows("read-io", _IO)
            self._keep("io", _IO_COLUMNS, rows)

    def _begin(self, name: str, argv: Sequence[str]) -> None:
        self._beside[name] = self._bench.background(self._bench.database, name, argv)

    async def _keep_traced(
        self, name: str, read: Callable[[str], tuple[Sequence[str], "Rows"]]
    ) -> None:
        file = f"{self._bench.directory}/strace-{'counts' if name == 'syscalls' else name}.txt"
        traced = await self._bench.run("cat", file)
        text = traced.stdout.decode(errors="replace")
        columns, rows = read(text)
        if not rows:
            err = f"{self._bench.steps_directory}/{name}/err"
            # Whom it let go of is no reason.
            last_lines_script = 'grep -v "tached$" "$1" | tail -n 3'
            last_lines = await self._bench.run(
                "sh", "-c", last_lines_script, "said", err
            )
            output = last_lines.stdout.decode(errors="replace").strip()[-300:]
            self._missing(name, output or _("nothing was seen"))
            return
        self._keep(name, columns, rows)
        self._bench.keep(f"strace-{name}.txt", text[:MOST_BYTES])
        message = _(
            "strace was attached during the load, which takes a large part of the throughput: "
            "this run is for its system calls, and its figures count in no comparison."
        )
        self._bench.note("traced", message)

    def _keep_waits(self, printed: str) -> None:
        lines = [line.split("\t") for line in printed.splitlines()]
        whole_lines = (
            line for line in lines if len(line) == 5
        )  # the last one may be half a line
        samples = [_WaitSample.of_line(line) for line in whole_lines]
        counts: Counter[tuple[str, str]] = Counter()
        asleep: Counter[tuple[str, str]] = Counter()
        for sample in samples:
            counts[sample.kind, sample.event] += sample.number
            asleep[sample.kind, sample.event] += sample.number * sample.is_asleep
        rows = [
            [*wait_key, str(asleep[wait_key]), str(counts[wait_key] - asleep[wait_key])]
            for wait_key, number in counts.most_common(MOST_ROWS)
            if number
        ]
        self._keep("waits", ("type", "event", "asleep", "runnable"), rows)
        self._bench.findings.series += _sessions(samples)

    async def _rows(self, step: str, sql: str) -> list[list[str]]:
        printed = await self._bench.sql(step, sql)
        return [line.split("\t") for line in printed.splitlines()]

    def _keep(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> None:
        text = json.dumps({"columns": columns, "rows": rows})
        self._bench.keep(f"evidence-{name}.json", text, is_json=True)

    def _missing(self, name: str, reason: object) -> None:
        self._bench.note(
            "evidence_missing", _("No %(name)s: %(said)s"), name=name, said=reason
        )

    def _statements_sql(self) -> str:
        newer = self._bench.plan.version_num >= EXEC_TIME_SINCE
        total, mean = (
            ("total_exec_time", "mean_exec_time")
            if newer
            else ("total_time", "mean_time")
        )
        query = r"left(regexp_replace(query, '\s+', ' ', 'g'), 300)"
        return (
            f"SELECT calls, round({total}::numeric, 1), round({mean}::numeric, 4), rows, {query} "  # noqa: S608
            f"FROM pg_stat_statements ORDER BY {total} DESC LIMIT {MOST_ROWS};"
        )


_IO_COLUMNS = (
    "backend_type",
    "object",
    "context",
    "reads",
    "writes",
    "extends",
    "hits",
    "evictions",
)
_IO = f"""
SELECT {", ".join(_IO_COLUMNS[:3])}, {", ".join(f"coalesce({c}, 0)" for c in _IO_COLUMNS[3:])}
FROM pg_stat_io
WHERE coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) + coalesce(hits, 0) > 0
ORDER BY coalesce(hits, 0) + coalesce(reads, 0) DESC LIMIT {MOST_ROWS};
"""  # noqa: S608

Rows = list[list[str]]


def calls(text: str) -> tuple[Sequence[str], Rows]:
    """The table of strace -c: share of the time, seconds, calls, errors, and what part fails."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        if (
            len(words) < 5
            or not words[0].replace(".", "", 1).isdigit()
            or words[-1] == "total"
        ):
            continue
        number, errors = int(words[3]), int(words[4]) if len(words) == 6 else 0
        share = f"{100 * errors / number:.1f}"
        rows.append([words[-1], words[0], words[1], str(number), str(errors), share])
    return ("call", "time_share", "seconds", "calls", "errors", "failed_share"), rows[
        :MOST_ROWS
    ]


def stacks(text: str) -> tuple[Sequence[str], Rows]:
    """The stacks of strace -k by the names of their functions, the most frequent first.

    Of a call that was interrupted by another process's line the stack stands at the second part.
    """
    counts: Counter[tuple[str, str]] = Counter()
    call, frames = "", list[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith(" > "):
            frames.append(_function(line))
            continue
        if call and frames:
            counts[call, " < ".join(frames[:MOST_FRAMES])] += 1
        frames, call = [], _call(line)
    rows = [[str(n), call, stack] for (call, stack), n in counts.most_common(MOST_ROWS)]
    return ("times", "call", "stack"), rows


def _call(line: str) -> str:
    """The name of the call in a line as "123 futex(…" or "123 <... futex resumed>"."""
    outcome = line.partition(" ")[2].strip()
    if outcome.startswith("<... "):
        return outcome.split()[1]
    return (
        outcome.partition("(")[0]
        if "(" in outcome and "<unfinished" not in outcome
        else ""
    )


def _function(line: str) -> str:
    """The function in a line as " > /usr/bin/postgres(LWLockRelease+0xe2) [0x3c]"."""
    inner = line.partition("(")[2].partition(")")[0]
    return inner.partition("+")[0] or line.partition("(")[0].rpartition("/")[2].strip(
        " >"
    )


class _WaitSample(NamedTuple):
    """How many sessions waited for an event at a time, in seconds."""

    at: float
    kind: str
    event: str
    is_asleep: bool
    number: int

    @classmethod
    def of_line(cls, words: Sequence[str]) -> Self:
        """As the query prints it."""
        fields = dict(
            zip(("at", "kind", "event", "state", "number"), words, strict=True)
        )
        return cls(
            float(fields["at"]),
            fields["kind"],
            fields["event"],
            fields["state"] in ASLEEP,
            int(fields["number"]),
        )

    @property
    def activity(self) -> str:
        """The kind of event that it sleeps for, or that it can run."""
        return self.kind if self.is_asleep else RUNNABLE


def _sessions(samples: Sequence[_WaitSample]) -> list[SeriesData]:
    """Active sessions by what they wait for, on average of each second."""
    if not samples:
        return []
    begun = samples[0].at
    kinds = sorted({sample.activity for sample in samples if sample.number})
    seconds: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    times: dict[int, set[float]] = defaultdict(set)
    for sample in samples:
        second = int(sample.at - begun)
        seconds[sample.activity][second] += sample.number
        times[second].add(sample.at)
    length = max(times) + 1
    return [
        SeriesData(
            known_metrics.WAITS.kind(kind).name,
            known_metrics.WAITS.unit,
            tuple(seconds[kind][n] / max(1, len(times[n])) for n in range(length)),
            start=0.0,
        )
        for kind in kinds
    ]
