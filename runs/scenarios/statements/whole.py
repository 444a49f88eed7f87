"""The load as a whole: its statements and transactions at their calls, by several clients at once.

pgbench draws them, by the weights of its scripts. It knows 128 scripts: of more units the heaviest
have a script each, and each of the others one that draws among those that it has. All versions of
a round draw in one order, by the round's seed. Where executions are cold, the caches are empty when
it begins, and fill by themselves.

pgbench reads what it is given, and has commands that a shell executes. So a unit with a backslash
anywhere, or with a colon before the name of a variable of pgbench, is left out, and named.
"""

import hashlib
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from runs.execution.bench import Bench, require_program
from runs.execution.clusters.postgres import DATABASE
from runs.scenarios.datasets import sending
from runs.scenarios.statements import cold
from runs.scenarios.statements.connection import ROLE, limited
from runs.statements.content import LoadContent
from runs.statements.found import FoundWhole, WholeProblem
from runs.statements.load import Unit
from runs.tools import pgbench
from runs.tools.pgbench import versions
from runs.wording import gettext_noop as _

CLIENTS = "whole_clients"
# PostgreSQL's own max_connections is 100, and some of them are BenchLab's.
MOST_CLIENTS = 90
# Of pgbench, and how many of them have one statement where there are more.
MOST_SCRIPTS, ALONE = 128, 100
# \if, and a seed: the same draws for all versions of a round.
LEAST_CLIENT = versions.RANDOM_SEED
TOTAL_WEIGHT = 1_000_000_000
# A deadlock is one of the load, and no fault: the transaction is begun again.
MOST_TRIES = 10
GRACE_SECONDS = 60
LONGEST_MESSAGE = 300

_VARIABLE = "benchlab_draw"
_UNSAFE = re.compile(
    rf"\\|:(?:scale|client_id|random_seed|default_seed|{_VARIABLE})(?![0-9A-Za-z_])"
)
# One text becomes the files, each behind a line that nobody can guess.
_SPLIT = r"""
index($0, mark) == 1 { close(file); file = folder "/whole-" ++number ".sql"; next }
{ print >file }
"""


@dataclass(frozen=True)
class Drawn:
    """A sample of a unit, and how often it is drawn among all."""

    text: str
    weight: int


async def measure_whole(
    bench: Bench, load: LoadContent, fine: Collection[int]
) -> FoundWhole | None:
    """The units of these numbers at their calls; None if it is not asked for.

    Those that failed on another version in the round before are left out here, too.
    """
    clients = bench.parameters.get(CLIENTS, 0)
    if not clients:
        return None
    failed = {unit.number for unit in load.units} - set(fine) | load.failed
    rest = [unit for unit in load.units if unit.number not in failed]
    safe = [unit for unit in rest if is_safe(unit)]
    found = FoundWhole(
        clients=clients,
        calls_per_second=None,
        drawn=tuple(unit.number for unit in safe),
        failed=tuple(sorted(failed)),
        unsafe=tuple(unit.number for unit in rest if unit not in safe),
    )
    if bench.plan.client_version_num < LEAST_CLIENT:
        return _not_measured(bench, found, "old_client")
    if not safe:
        return _not_measured(bench, found, "nothing_left")
    return await _measure(bench, load, found, scripts(safe))


def is_safe(unit: Unit) -> bool:
    """Whether pgbench reads nothing in it as its own."""
    return not any(_UNSAFE.search(text) for sample in unit.samples for text in sample)


async def _measure(
    bench: Bench, load: LoadContent, found: FoundWhole, drawn: Sequence[Drawn]
) -> FoundWhole:
    mark = f"-- {secrets.token_hex(16)}"
    text = "".join(f"{mark}\n{script.text}" for script in drawn)
    path = f"{bench.directory}/whole"
    await sending.send_text(bench, text, path)
    words = ("-v", f"mark={mark}", "-v", f"folder={bench.directory}", _SPLIT, path)
    await bench.run("env", "LC_ALL=C", "awk", *words)
    duration = bench.parameters["duration"]
    # A statement takes longer among others than alone.
    timeout_s = bench.parameters["statement_timeout"] * found.clients
    cluster, client_version = bench.cluster, bench.plan.client_version_num
    command = pgbench.benchmark(
        bench.plan.client_bindir,
        pgbench.Connection(cluster.socket_dir, cluster.port, ROLE, DATABASE),
        client_version=client_version,
        scripts=[
            pgbench.Script(f"{bench.directory}/whole-{number}.sql", script.weight)
            for number, script in enumerate(drawn, start=1)
        ],
        clients=found.clients,
        duration_s=duration,
        scale=1,
        progress_s=None,
        per_statement=False,
        maximum_tries=MOST_TRIES if client_version >= versions.MAXIMUM_TRIES else None,
        random_seed=_seed(f"{bench.plan.campaign}/{load.round}"),
    )
    if cold.is_cold(bench):
        await cold.restart(bench, "whole")
    options = f"PGOPTIONS=-c statement_timeout={timeout_s}s"
    step = await bench.load_step(
        "whole",
        limited((options, "PGCLIENTENCODING=UTF8", *command)),
        limit_s=duration + timeout_s + GRACE_SECONDS,
        is_private=True,
    )
    node = bench.database.name
    begun, _ended = bench.load_spans.get(node, (step.started, step.finished))
    bench.load_spans[node] = (begun, step.finished)
    require_program(step, "pgbench", bench.database)
    expected = pgbench.Expected(duration_s=duration, clients=found.clients)
    result = pgbench.parse(
        step.stdout, step.stderr, exit_status=step.exit_status, expected=expected
    )
    if result.status != "complete" or not result.tps:
        message = next(iter(_errors(step.stderr)), "")
        return _not_measured(bench, found, "ended", message)
    return replace(found, calls_per_second=result.tps)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % 2**31


def _errors(stderr: str) -> Iterator[str]:
    for line in stderr.splitlines():
        if "aborted" in line or "ERROR" in line or "error" in line:
            yield line.strip()[:LONGEST_MESSAGE]


def _not_measured(
    bench: Bench, found: FoundWhole, problem: WholeProblem, message: str = ""
) -> FoundWhole:
    """What pgbench said may quote the load: it stays in what its key opens."""
    texts = {
        "old_client": _(
            "The load as a whole was not measured: the server has no pgbench of 11 or later."
        ),
        "nothing_left": _(
            "The load as a whole was not measured: none of its statements can be drawn."
        ),
        "ended": _("The load as a whole was not measured: pgbench ended early."),
    }
    bench.note("whole_not_measured", texts[problem])
    return replace(found, problem=problem, message=message)


def scripts(units: Sequence[Unit]) -> list[Drawn]:
    """The units as scripts of pgbench, which draws each sample by the calls of its unit."""
    weighted = list(_samples(units))
    if len(weighted) <= MOST_SCRIPTS:
        return weighted
    weighted.sort(key=lambda sample: -sample.weight)
    alone, others = weighted[:ALONE], weighted[ALONE:]
    groups = MOST_SCRIPTS - ALONE
    return alone + [_group(others[first::groups]) for first in range(groups)]


def _samples(units: Sequence[Unit]) -> Iterator[Drawn]:
    total = sum(unit.calls for unit in units) or 1
    for unit in units:
        share = unit.calls / total / len(unit.samples)
        weight = max(1, round(TOTAL_WEIGHT * share))
        for texts in unit.samples:
            yield Drawn(_text(unit, texts), weight)


def _text(unit: Unit, texts: Iterable[str]) -> str:
    """What is executed, and taken back. A single statement takes one way to the server and back."""
    if unit.is_transaction:
        lines = ["BEGIN;", *(f"{text}\n;" for text in texts), "ROLLBACK;", ""]
        return "\n".join(lines)
    return "BEGIN \\;\n" + "".join(f"{text}\n\\;\n" for text in texts) + "ROLLBACK;\n"


def _group(samples: Sequence[Drawn]) -> Drawn:
    """A script that draws among samples."""
    total = sum(sample.weight for sample in samples)
    lines = [f"\\set {_VARIABLE} random(1, {total})\n"]
    bound = 0
    for place, sample in enumerate(samples):
        bound += sample.weight
        command = "elif" if place else "if"
        lines.append(f"\\{command} :{_VARIABLE} <= {bound}\n{sample.text}")
    lines.append("\\endif\n")
    return Drawn("".join(lines), total)
