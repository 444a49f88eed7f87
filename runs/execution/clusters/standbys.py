"""Standbys as seen from their primary, the run's own cluster: who follows, how, how far behind.

Source: pg_stat_replication and synchronous_standby_names in the manuals of 9.2 to 18.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from runs.execution.bench import Bench
from runs.execution.clusters.postgres import lines_for
from runs.execution.errors import TargetProblem
from runs.wording import gettext_noop as _

# Version 10 renamed the functions for WAL and positions.
LSN_SINCE = 100000
LIST_SINCE = 90600
FIRST_AND_ANY_SINCE = 100000
KEEP_SIZE_SINCE = 130000
# A base backup has nearly everything; replaying the rest of a load may take time.
CATCH_UP_SECONDS = 600
POLLS_A_SECOND = 5

_WAIT = """
wanted=$1 tries=$2 sql=$3
shift 3
tried=0
while [ $tried -lt "$tries" ]; do
    found=$(printf '%s\\n' "$sql" | "$@") || exit 2
    [ "$found" = "$wanted" ] && exit 0
    tried=$((tried + 1))
    sleep 0.2
done
printf '%s\\n' "$found"
exit 1
"""

REPLICA_SINCE = 90600


def settings_of_primary(version_num: int) -> dict[str, str]:
    """What a primary needs so that standbys are copied from it and follow without slots."""
    is_size = version_num >= KEEP_SIZE_SINCE
    retention = {"wal_keep_size": "256MB"} if is_size else {"wal_keep_segments": "16"}
    own_settings = {"hot_standby": "on", "synchronous_standby_names": ""}
    return {**needed_settings(version_num), **own_settings, **retention}


def needed_settings(version_num: int) -> dict[str, str]:
    """The settings that a cluster needs to be the source of base backups."""
    level = "replica" if version_num >= REPLICA_SINCE else "hot_standby"
    return {"wal_level": level, "max_wal_senders": "10"}


def position_sql(version_num: int) -> str:
    """The present end of the WAL, as an expression."""
    return (
        "pg_current_wal_lsn()"
        if version_num >= LSN_SINCE
        else "pg_current_xlog_location()"
    )


def behind_sql(version_num: int) -> str:
    """How many bytes of WAL a standby has not replayed."""
    if version_num >= LSN_SINCE:
        return "pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)"
    return "pg_xlog_location_diff(pg_current_xlog_location(), replay_location)"


def names_setting(
    version_num: int, names: Sequence[str], number: int, *, method: str = "FIRST"
) -> str:
    """synchronous_standby_names for `number` synchronous ones of `names`.

    Raises ValueError for what the version does not support, and for more than there are names: the
    server accepts `4 (a, b)`, and then no commit ever ends.
    """
    if not number:
        return ""
    if number > len(names):
        raise ValueError(f"{number} synchronous standbys of {len(names)}")
    joined_names = ", ".join(names)
    if version_num >= FIRST_AND_ANY_SINCE:
        return f"{method} {number} ({joined_names})"
    if method != "FIRST":
        raise ValueError("a quorum came with PostgreSQL 10")
    if version_num >= LIST_SINCE:
        return f"{number} ({joined_names})"
    if number > 1:
        raise ValueError("more than one synchronous standby came with PostgreSQL 9.6")
    return joined_names


async def set_modes(bench: Bench, modes: Mapping[str, str], number: int) -> None:
    """Let commits wait for `number` of the synchronous standbys, until all have these sync_states.

    The primary's own setting is that none is synchronous.
    """
    if synchronous := [name for name, mode in modes.items() if mode != "async"]:
        method = "ANY" if "quorum" in modes.values() else "FIRST"
        value = names_setting(
            bench.plan.version_num, synchronous, number, method=method
        )
        argv, text = bench.cluster.append(
            lines_for({"synchronous_standby_names": value})
        )
        await bench.step("set-synchronous", argv, stdin=text)
        await bench.step("set-synchronous-reload", bench.cluster.reload())
    await wait(bench, list(modes), "wait-for-modes", states=",".join(modes.values()))


async def wait(
    bench: Bench, names: Sequence[str], step: str, *, states: str = ""
) -> None:
    """Wait until these follow and have replayed all earlier WAL; a durable step.

    With `states` (sync_state of each in the order of names, separated by commas) also until they
    have these. Raises TargetProblem `standby_does_not_catch_up`.
    """
    version_num = bench.plan.version_num
    end = (
        await bench.sql(f"{step}-position", f"SELECT {position_sql(version_num)};")
    ).strip()
    tries = str(CATCH_UP_SECONDS * POLLS_A_SECOND)
    sql = _caught_up_sql(version_num, names, end, with_states=bool(states))
    expected = "\t".join([str(len(names)), *([states] if states else [])])
    argv = ["sh", "-c", _WAIT, "wait", expected, tries, sql, *bench.cluster.psql()]
    result = await bench.step(step, argv, check=False)
    if result.exit_status != 0:
        raise await _does_not_catch_up(
            bench, names, expected, result.stdout + result.stderr
        )


@asynccontextmanager
async def proven(
    bench: Bench, moment: str, modes: Mapping[str, str]
) -> AsyncIterator[None]:
    """pg_stat_replication before and after the block, stored as the files WHAT-before and -after.

    Both must show these standbys with their sync_state. Raises TargetProblem `replication_differs`.
    """
    before = await _proof(bench, f"{moment}-before", modes)
    yield
    if await _proof(bench, after := f"{moment}-after", modes) != before:
        raise _differs(after, "The standbys were not the same before the load.")


async def seen(bench: Bench, step: str) -> str:
    """pg_stat_replication: name, state and sync_state of each standby; a step and STEP.txt."""
    sql = (
        "SELECT application_name, state, sync_state FROM pg_stat_replication "
        "WHERE state <> 'backup' ORDER BY 1;"
    )
    text = (await bench.sql(step, sql)).rstrip("\n")
    bench.keep(f"{step}.txt", f"{text}\n")
    return text


async def _proof(bench: Bench, step: str, modes: Mapping[str, str]) -> str:
    text = await seen(bench, step)
    rows = [line.split("\t") for line in text.splitlines()]
    if {name: sync_state for name, _state, sync_state in rows} != modes:
        raise _differs(step, f"pg_stat_replication says: {text or 'nothing'}")
    return text


def _differs(step: str, actual: str) -> TargetProblem:
    """Standbys that are not those of the levels, before the load or after it."""
    return TargetProblem(
        _(
            "Replication is not what the levels say, and its figures would be of something "
            "else. %(found)s"
        ),
        code="replication_differs",
        remedy=_("Read %(step)s.txt and the standbys' logs, then queue the run again."),
        found=actual,
        step=step,
    )


async def missing(bench: Bench, names: Sequence[str]) -> list[str]:
    """Those that do not follow now; not a step. None if the primary does not answer."""
    sql = "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'"
    words = bench.cluster.psql()[:-2]  # not from standard input
    reply = await bench.run("env", "PGCONNECT_TIMEOUT=10", *words, "-c", sql)
    if reply.exit_status != 0:
        return []
    following = reply.stdout.decode(errors="replace").split()
    return [name for name in names if name not in following]


def _caught_up_sql(
    version_num: int, names: Sequence[str], end: str, *, with_states: bool
) -> str:
    quoted_names = ", ".join(f"'{name}'" for name in names)
    if version_num >= LSN_SINCE:
        reached = f"replay_lsn >= '{end}'"
    else:
        reached = f"pg_xlog_location_diff(replay_location, '{end}') >= 0"
    places = " ".join(
        f"WHEN '{name}' THEN {position}" for position, name in enumerate(names)
    )
    order = f"ORDER BY CASE application_name {places} END"
    states = f", string_agg(sync_state, ',' {order})" if with_states else ""
    return (
        f"SELECT count(*){states} FROM pg_stat_replication "  # noqa: S608 -- names of members
        f"WHERE application_name IN ({quoted_names}) AND state = 'streaming' AND {reached};"
    )


async def _does_not_catch_up(
    bench: Bench, names: Sequence[str], expected: str, actual: str
) -> TargetProblem:
    logs = [
        f"{name}: {await bench.server_log(5, bench.members[name])}"
        for name in names
        if name in bench.members
    ]
    logged = "\n".join([actual.strip() or "(none)", *logs])
    return TargetProblem(
        _(
            "The standbys %(names)s do not follow as they should (%(wanted)s); seen: %(told)s"
        ),
        code="standby_does_not_catch_up",
        remedy=_(
            "Read the logs of the standbys: their disk may be slow, the network cut, or a setting "
            "smaller than the primary's."
        ),
        names=", ".join(names),
        wanted=expected.replace(chr(9), " "),
        told=logged,
    )
