"""What may have made two sides differ: what differs, can act, and belongs to a part that moved.

Suspects come from the differences of both sides, not from counters: a third of the causes that were
planted moves none. Counters and plans only rank them. A rank is evidence times reach, no
probability. What is left out says why.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from runs.analysis.why import counters
from runs.analysis.why.account import Account, nodes
from runs.analysis.why.counters import Moved, Name
from runs.analysis.why.parts import Difference
from runs.postgresql_settings.catalogue import Setting, setting
from runs.postgresql_settings.comparing import Shown

MOST_PROVEN = 6
BLOATED = 1.2
Kind = Literal["setting", "plan", "index", "bloat", "checksums", "build", "vacuum", "checkpoints"]

# What makes a newer version behave as one without the setting.
NEUTRAL: Mapping[str, str] = {
    "backend_flush_after": "0",
    "checkpoint_flush_after": "0",
    "compute_query_id": "off",
    "enable_async_append": "off",
    "enable_distinct_reordering": "off",
    "enable_gathermerge": "off",
    "enable_group_by_reordering": "off",
    "enable_incremental_sort": "off",
    "enable_memoize": "off",
    "enable_parallel_append": "off",
    "enable_parallel_hash": "off",
    "enable_partition_pruning": "off",
    "enable_presorted_aggregate": "off",
    "enable_self_join_elimination": "off",
    "hash_mem_multiplier": "1.0",
    "io_combine_limit": "8kB",
    "io_method": "sync",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
}
# Places, certificates and files of logs: nobody asks whether these made a difference.
_IDLE = re.compile(
    r"Preset|File Locations|Connections and Authentication / (?:Auth|SSL|Security|TCP)"
    r"|Reporting and Logging / (?:Where|Process)|Client Connection Defaults / Locale"
)
_PARALLEL = re.compile(r"parallel|\Amax_worker_processes")
_RECORDING = re.compile(r"\A(?:track_|compute_query_id|log_(?:statement|duration|min_duration))")
_WRITTEN_BY = ("synchronous_commit", "default_toast_compression", "synchronous_standby_names")


@dataclass(frozen=True)
class Side:
    """One side: its version, its settings by effective value, and the accounts of its runs."""

    major: str
    version_num: int
    settings: Mapping[str, Shown]
    accounts: Sequence[Account] = ()
    query_mode: str = "simple"

    @property
    def counted(self) -> list[dict[Name, float]]:
        """The counters of each run, per transaction."""
        return [counters.per_transaction(account, self.version_num) for account in self.accounts]


@dataclass(frozen=True)
class Suspect:
    """A difference of `b` from `a`.

    `put_back` are the settings that give `b` what `a` has; empty where no setting can. `reason`
    says by a code why it is left out; empty for a candidate. `evidence` are codes of what points
    to it, `parts` those of the time that it can reach; empty is all.
    """

    kind: Kind
    name: str
    a: str
    b: str
    put_back: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    evidence: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    rank: float = 0.0

    @property
    def is_candidate(self) -> bool:
        """Whether putting it back can be tried."""
        return bool(self.put_back) and not self.reason


@dataclass(frozen=True)
class Facts:
    """What both loads did together; None is unknown."""

    writes: bool | None
    reads: bool | None
    has_checkpoints: bool | None
    has_vacuum: bool | None
    has_temporary: bool | None
    plans: tuple[str, str] | None
    node_types: frozenset[str]
    has_jit: bool
    can_jit: bool
    moved: Sequence[Moved]

    @property
    def same_plans(self) -> bool:
        """Known to be the same on both sides."""
        return self.plans is not None and self.plans[0] == self.plans[1]


def find(a: Side, b: Side, difference: Difference | None) -> list[Suspect]:
    """Suspects by rank, candidates first, those after the sixth with the reason `rank`."""
    facts = facts_of(a, b)
    suspects = [*_settings(a, b, facts), *_others(a, b, facts)]
    ranked = sorted(
        (_judged(suspect, facts, difference) for suspect in suspects),
        key=lambda suspect: (
            not suspect.is_candidate,
            bool(suspect.reason),
            -suspect.rank,
            suspect.name,
        ),
    )
    candidates = [suspect for suspect in ranked if suspect.is_candidate]
    late = {suspect.name for suspect in candidates[MOST_PROVEN:]}
    return [
        replace(suspect, reason="rank") if suspect.name in late else suspect for suspect in ranked
    ]


def facts_of(a: Side, b: Side) -> Facts:
    """What the loads of both sides did."""
    accounts = [*a.accounts, *b.accounts]
    counted = [*a.counted, *b.counted]

    def happened(view: str, *columns: str, least: float = 0.0) -> bool | None:
        return counters.total(counted, view, *columns) > least if counted else None

    plans = (_plans_of(a), _plans_of(b))
    plan_nodes = (node for account in accounts for plan in account.plans for node in nodes(plan))
    return Facts(
        writes=happened("pg_stat_user_tables", "n_tup_ins", "n_tup_upd", "n_tup_del", least=0.01),
        # Of the load's tables: a new session reads the catalogue, too.
        reads=happened("pg_statio_user_tables", "heap_blks_read", "idx_blks_read", least=0.01),
        has_checkpoints=happened("checkpoints", "timed", "requested"),
        has_vacuum=happened("pg_stat_user_tables", "autovacuum_count", "autoanalyze_count"),
        has_temporary=happened("pg_stat_database", "temp_bytes"),
        plans=plans if all(plans) else None,
        node_types=frozenset(str(node.get("Node Type", "")) for node in plan_nodes),
        has_jit=any("JIT" in plan for account in accounts for plan in account.plans),
        can_jit=any(account.jit for account in accounts),
        moved=counters.moved(a.counted, b.counted, (a.version_num, b.version_num)),
    )


def _plans_of(side: Side) -> str:
    """The forms of a side's plans, the same for the same plans; empty if none is known."""
    of_each = {
        " | ".join(form(plan.get("Plan", {})) for plan in account.plans)
        for account in side.accounts
        if account.plans
    }
    return " or ".join(sorted(of_each))


def form(node: Mapping[str, Any]) -> str:
    """A plan without its figures and values, in words that all versions have."""
    node_fields = ("Node Type", "Join Type", "Relation Name", "Index Name", "Workers Planned")
    node_text = " ".join(str(node[name]) for name in node_fields if name in node)
    below = ", ".join(form(child) for child in node.get("Plans", ()))
    return f"{node_text} ({below})" if below else node_text


def _settings(a: Side, b: Side, facts: Facts) -> Iterator[Suspect]:
    for name, b_setting in b.settings.items():
        a_setting = a.settings.get(name)
        catalogued = setting(name, b.major)
        if (
            catalogued is None
            or _IDLE.match(catalogued.category)
            or (a_setting is not None and a_setting.amount == b_setting.amount)
        ):
            continue
        back = a_setting.text if a_setting is not None else NEUTRAL.get(name)
        if back is None or (a_setting is None and back == b_setting.text):
            continue
        yield Suspect(
            "setting",
            name,
            a_setting.text if a_setting is not None else "",
            b_setting.text,
            put_back={name: back},
            reason=_cannot_act(catalogued, facts, b.query_mode),
            evidence=tuple(_evidence(catalogued, facts)),
            parts=_parts_of(catalogued),
        )


def _why_no_jit(facts: Facts) -> str:
    if facts.has_jit:
        return ""
    return "jit_not_used" if facts.can_jit else "no_jit"


def _cannot_act(catalogued: Setting, facts: Facts, query_mode: str) -> str:
    """Why this setting cannot have acted in this load, by a code; empty if it can.

    What is not known is no reason.
    """
    name, category = catalogued.name, catalogued.category
    if name.startswith("jit"):
        return _why_no_jit(facts)
    if name == "plan_cache_mode":
        return "not_prepared" if query_mode != "prepared" else ""
    if category.startswith("Query Tuning") or _PARALLEL.search(name):
        return "plans_same" if facts.same_plans else ""
    if name in _WRITTEN_BY or category in _IF_WRITTEN:
        return "nothing_written" if facts.writes is False else ""
    if category == "Write-Ahead Log / Checkpoints":
        return "no_checkpoint" if facts.has_checkpoints is False else ""
    if category.startswith("Vacuuming"):
        return "no_vacuum" if facts.has_vacuum is False else ""
    if category == "Resource Usage / I/O" or name == "shared_buffers":
        return "nothing_read" if facts.reads is False else ""
    if name in {"work_mem", "hash_mem_multiplier"}:
        return _memory(facts)
    if name in _ALWAYS or _RECORDING.match(name):
        return ""
    return "not_in_load"


_IF_WRITTEN = ("Write-Ahead Log / Settings", "Resource Usage / Background Writer")
_ALWAYS = ("huge_pages", "max_connections", "shared_preload_libraries", "session_preload_libraries")
_USES_MEMORY = re.compile(r"Sort|Hash|Material|Memoize|Bitmap|WindowAgg|SetOp|Recursive")


def _memory(facts: Facts) -> str:
    if facts.plans is None or facts.has_temporary:
        return ""
    return (
        ""
        if any(_USES_MEMORY.search(node_type) for node_type in facts.node_types)
        else "no_memory_used"
    )


def _parts_of(catalogued: Setting) -> tuple[str, ...]:
    """The parts of the time that a setting can reach; empty is any."""
    if (
        catalogued.name == "synchronous_commit"
        or catalogued.category == "Write-Ahead Log / Settings"
    ):
        return ("blocked", "server")
    if catalogued.category == "Resource Usage / I/O" or catalogued.name == "shared_buffers":
        return ("blocked", "server")
    if _RECORDING.match(catalogued.name):
        return ("server",)
    return ()


_COUNTED_BY: Mapping[str, tuple[str, ...]] = {
    "wal_compression": ("wal_bytes", "wal_fpi"),
    "full_page_writes": ("wal_bytes", "wal_fpi"),
    "synchronous_commit": ("wal_sync", "wal_write"),
    "shared_buffers": ("blks_read", "evictions", "heap_blks_read", "idx_blks_read"),
    "work_mem": ("temp_bytes", "temp_files"),
    "hash_mem_multiplier": ("temp_bytes", "temp_files"),
    "max_wal_size": ("timed", "requested", "buffers_written", "wal_fpi"),
    "checkpoint_timeout": ("timed", "requested", "buffers_written", "wal_fpi"),
}


def _evidence(catalogued: Setting, facts: Facts) -> Iterator[str]:
    columns = _COUNTED_BY.get(catalogued.name, ())
    if any(moved.column in columns for moved in facts.moved):
        yield "counters_moved"
    is_planner = catalogued.category.startswith("Query Tuning")
    if facts.plans is not None and not facts.same_plans:
        if _PARALLEL.search(catalogued.name):
            if ("Gather" in facts.plans[0]) != ("Gather" in facts.plans[1]):
                yield "parallel_differs"
        elif is_planner or catalogued.name in {"work_mem", "effective_cache_size"}:
            yield "plans_differ"
    if catalogued.name == "jit" and facts.has_jit:
        yield "jit_used"


def _others(a: Side, b: Side, facts: Facts) -> Iterator[Suspect]:
    """What differs besides settings. No setting puts it back."""
    if facts.plans is not None and not facts.same_plans:
        a_plan, b_plan = facts.plans
        yield Suspect("plan", "", a_plan, b_plan, evidence=("plans_differ",))
    sums = [side.settings.get("data_checksums", Shown("off", True, "off")) for side in (a, b)]
    if sums[0].amount != sums[1].amount:
        yield Suspect(
            "checksums",
            "data_checksums",
            sums[0].text,
            sums[1].text,
            reason="" if facts.reads is not False or facts.writes is not False else "nothing_read",
            parts=("server",),
        )
    if a.accounts and b.accounts:
        yield from _of_relations(a.accounts[0], b.accounts[0])
        yield from _of_builds(a.accounts[0], b.accounts[0])
    for kind, columns in _HAPPENED.items():
        if any(counter.column in columns for counter in facts.moved):
            yield Suspect(kind, "", "", "", evidence=("counters_moved",))


_HAPPENED: Mapping[Kind, tuple[str, ...]] = {
    "vacuum": ("autovacuum_count", "autoanalyze_count"),
    "checkpoints": ("timed", "requested"),
}


def _of_relations(a: Account, b: Account) -> Iterator[Suspect]:
    indexes = [{n for n, e in side.relations.items() if e["kind"] == "i"} for side in (a, b)]
    if indexes[0] != indexes[1]:
        of_a, of_b = (", ".join(sorted(indexes[i] - indexes[1 - i])) for i in (0, 1))
        yield Suspect(
            "index", "", of_a, of_b, evidence=("relations_differ",), parts=("server", "blocked")
        )
    for name in a.relations.keys() & b.relations.keys():
        sizes = [float(side.relations[name]["bytes"]) for side in (a, b)]
        if min(sizes) > 0 and max(sizes) / min(sizes) > BLOATED and max(sizes) > MOST_SMALL:
            of_a, of_b = (f"{size / 2**20:.1f} MB" for size in sizes)
            yield Suspect("bloat", name, of_a, of_b, evidence=("relations_differ",))


MOST_SMALL = 1024 * 1024


def _of_builds(a: Account, b: Account) -> Iterator[Suspect]:
    of_compiler = ("compiler", _compiler(a.built), _compiler(b.built))
    of_flags = ("CFLAGS", *(side.configuration.get("CFLAGS", "") for side in (a, b)))
    for name, of_a, of_b in (of_compiler, of_flags):
        if of_a and of_b and of_a != of_b:
            yield Suspect("build", name, of_a, of_b, parts=("server",))


_COMPILER = re.compile(r"compiled by ([^,]+)")


def _compiler(built: str) -> str:
    compiler_match = _COMPILER.search(built)
    return compiler_match[1] if compiler_match else ""


def _judged(suspect: Suspect, facts: Facts, difference: Difference | None) -> Suspect:
    """With its rank, and left out where none of its parts moved."""
    reason, reach = suspect.reason, 1.0
    if difference is not None and suspect.parts and not difference.limits:
        moved = set(difference.moved)
        if difference.cpu is not None and difference.cpu.is_apart:
            moved.add("server")
        if moved and difference.rounds >= 2 and not moved & set(suspect.parts):
            reason = reason or "part_not_moved"
        total_change = (
            sum(abs(part_change.value) for part_change in difference.by_part.values()) or 1.0
        )
        reach = (
            sum(
                abs(difference.by_part[name].value)
                for name in suspect.parts
                if name in difference.by_part
            )
            / total_change
        )
    weights = {"parallel_differs": 6.0, "jit_used": 6.0, "plans_differ": 3.0, "counters_moved": 4.0}
    evidence = 1.0 + sum(weights.get(code, 1.0) for code in suspect.evidence)
    return replace(suspect, reason=reason, rank=evidence * reach)
