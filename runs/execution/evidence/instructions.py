"""Instructions of the load's statements by function, counted by callgrind after the run.

It needs no permission, no hardware counters and no quiet machine, and repeats to a thousandth of a
percent: a server in single-user mode executes the statements of FEW and of MANY transactions, with
the load's values, and those of MANY twice. The second time all pages are in memory; the difference
of MANY and FEW reads them, as shared buffers were empty. It counts work, not time: no waits, no
cache misses, one process, the simple protocol, no BEGIN and COMMIT.
"""

import json
import re

from runs.execution.bench import Bench
from runs.execution.clusters.postgres import DATABASE
from runs.execution.errors import TargetProblem
from runs.wording import gettext_noop as _

FILE = "evidence-instructions.json"
COLUMNS = ("function", "instructions", "reading")
FEW, MANY = 10, 60
LIMIT_SECONDS = 900
# Functions with less than this share of all are not kept.
LEAST_SHARE = 0.0005
MOST_FUNCTIONS = 400
_COUNT = """
export LC_ALL=C
command -v valgrind >/dev/null || exit 127
postgres=$1 data=$2 folder=$3 times=$4 database=$5
valgrind --tool=callgrind --callgrind-out-file="$folder/callgrind.$times" \\
    "$postgres" --single -D "$data" "$database" >/dev/null || exit 1
exec callgrind_annotate --threshold=100 "$folder/callgrind.$times"
"""
_TOTAL = re.compile(
    r"^[ \t]*([\d,]+) (?:\([\d.]+%\))?[ \t]+PROGRAM TOTALS", re.MULTILINE
)
_FUNCTION = re.compile(r"^\s*([\d,]+) +\([ \d.]+%\) +\S*?:(\S+?)(?: \[|'\d|$)")
# What a compiler appends to parts and variants of a function.
_CLONE = re.compile(r"\.(?:isra|part|constprop|cold|lto_priv)\b.*")


async def count(bench: Bench) -> None:
    """Keep the instructions of a transaction by function; the server is stopped.

    What cannot be counted costs the run its evidence only, and is noted with it.
    """
    lines = [
        line_of(statement) for statement in bench.statements if "--" not in statement
    ]
    lines_each = len(lines) // MANY
    if not lines_each:
        bench.note(
            "evidence_missing", _("No instructions: the statements are not known.")
        )
        return
    try:
        few, many, twice = [
            await _counted(bench, lines[: lines_each * times] * again, times * again)
            for times, again in ((FEW, 1), (MANY, 1), (MANY, 2))
        ]
    except TargetProblem as problem:
        bench.note(
            "evidence_missing", _("No instructions: %(problem)s"), problem=problem
        )
        return
    rows = [
        (name, *map(str, numbers)) for name, *numbers in differences(few, many, twice)
    ]
    bench.keep(FILE, json.dumps({"columns": COLUMNS, "rows": rows}), is_json=True)


def line_of(statement: str) -> str:
    """The statement in one line, at whose end a server in single-user mode executes it."""
    return " ".join(statement.split()).rstrip("; ") + ";"


async def _counted(bench: Bench, lines: list[str], times: int) -> dict[str, int]:
    folder, cluster = bench.directory, bench.cluster
    words = (f"{cluster.bindir}/postgres", cluster.data, folder, str(times), DATABASE)
    step = await bench.step(
        f"instructions-{times}",
        ["sh", "-c", _COUNT, "instructions", *words],
        stdin="".join(f"{line}\n" for line in lines),
        check=False,
        limit_s=LIMIT_SECONDS,
    )
    if step.exit_status == 127:
        raise TargetProblem(
            _("valgrind is not installed there."), code="missing_program"
        )
    instructions = functions(step.stdout)
    if step.exit_status != 0 or not instructions:
        raise TargetProblem(
            step.stderr.strip()[-300:] or _("callgrind counted nothing.")
        )
    return instructions


def functions(printed: str) -> dict[str, int]:
    """The instructions by function that callgrind_annotate printed; all of them under ""."""
    instructions: dict[str, int] = {}
    if total := _TOTAL.search(printed):
        instructions[""] = int(total[1].replace(",", ""))
    for line in printed.splitlines():
        if function_match := _FUNCTION.match(line):
            name = _CLONE.sub("", function_match[2])
            instructions[name] = instructions.get(name, 0) + int(
                function_match[1].replace(",", "")
            )
    return instructions


def differences(
    few: dict[str, int], many: dict[str, int], twice: dict[str, int]
) -> list[tuple[str, int, int]]:
    """Of one transaction by function, with its pages in memory and reading them.

    The most in memory first; the first row is all functions.
    """
    differences_by_name = {
        name: (
            round((twice.get(name, 0) - number) / MANY),
            round((number - few.get(name, 0)) / (MANY - FEW)),
        )
        for name, number in many.items()
    }
    total = differences_by_name.pop("", (0, 0))
    rows = [
        (name, *pair_of_numbers)
        for name, pair_of_numbers in differences_by_name.items()
        if max(pair_of_numbers) > LEAST_SHARE * total[0]
    ]
    rows.sort(key=lambda row: -row[1])
    return [("", *total), *rows[:MOST_FUNCTIONS]]
