"""Which settings may put a statement's plan back: those whose default differs between two versions,
and to which the difference of its plans points.

Only settings that a session may change are tried. Of those that one version lacks, the other gets
what makes it behave as without (`suspects.NEUTRAL`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runs.analysis.why.suspects import NEUTRAL
from runs.postgresql_settings import catalogue
from runs.postgresql_settings.catalogue import Setting
from runs.statements.plan_shape import PlanDifference

# More arms than these need more than a minute or two.
MOST = 6

_PARALLEL = (
    "max_parallel_workers_per_gather",
    "max_parallel_workers",
    "min_parallel_table_scan_size",
    "min_parallel_index_scan_size",
    "enable_parallel_append",
    "enable_parallel_hash",
    "enable_gathermerge",
)
_JIT = ("jit",)
_MEMORY = ("work_mem", "hash_mem_multiplier")
_JOINS = ("enable_self_join_elimination", "effective_cache_size", *_MEMORY)
_GROUPS = ("enable_presorted_aggregate", "enable_group_by_reordering", *_MEMORY)
_SCANS = ("effective_cache_size",)
# By how the name of a node begins that only one of the plans has.
_BY_NODE: Mapping[str, Sequence[str]] = {
    "Memoize": ("enable_memoize",),
    "Incremental Sort": ("enable_incremental_sort",),
    "Sort": _GROUPS,
    "Unique": ("enable_distinct_reordering",),
    "GroupAggregate": _GROUPS,
    "HashAggregate": _GROUPS,
    "Aggregate": _GROUPS,
    "Hash": _JOINS,
    "Merge": _JOINS,
    "Nested Loop": _JOINS,
    "Append": ("enable_partition_pruning", "enable_async_append"),
    "Bitmap Heap Scan": ("effective_io_concurrency", *_SCANS),
    "Bitmap Index Scan": _SCANS,
    "Index": _SCANS,
    "Seq Scan": _SCANS,
}
_CTE = "CTE Scan"


@dataclass(frozen=True)
class PutBack:
    """A setting: its default on base and head (None: that version lacks it), and what is tried."""

    name: str
    base: str | None
    head: str
    value: str


def settings(difference: PlanDifference, base: str, head: str) -> tuple[PutBack, ...]:
    """What may put a statement back on `head`; versions as they are called: 9.6.24, 18.0.

    Those that the plans point to most come first, no more than MOST.
    """
    majors = catalogue.known_major(base), catalogue.known_major(head)
    if majors[0] is None or majors[1] is None:
        return ()
    settings_to_try = []
    for name in dict.fromkeys(_pointed_to(difference)):
        candidate = _put_back(
            catalogue.setting(name, majors[0]), catalogue.setting(name, majors[1])
        )
        if candidate is not None:
            settings_to_try.append(candidate)
    return tuple(settings_to_try[:MOST])


def is_inlined(difference: PlanDifference) -> bool:
    """Whether a CTE became a part of the query around it, which no setting prevents."""
    base, head = (
        any(title.startswith(_CTE) for title in titles)
        for titles in (difference.only_base, difference.only_head)
    )
    return base and not head


def _pointed_to(difference: PlanDifference) -> Iterator[str]:
    if difference.becomes_parallel or difference.becomes_serial:
        yield from _PARALLEL
    if difference.gains_jit or difference.loses_jit:
        yield from _JIT
    if difference.gains_spill or difference.loses_spill:
        yield from _MEMORY
    for title in (*difference.only_head, *difference.only_base):
        for beginning, names in _BY_NODE.items():
            if title.removeprefix("Parallel ").startswith(beginning):
                yield from names


def _put_back(base: Setting | None, head: Setting | None) -> PutBack | None:
    if head is None or head.context != "user":
        return None
    default = _text(head)
    if base is None:
        value = NEUTRAL.get(head.name)
        return PutBack(head.name, None, default, value) if value else None
    value = _text(base)
    if value == default:
        return None
    return PutBack(head.name, value, default, value)


def _text(of: Setting) -> str:
    """The default with its unit, as a session may set it."""
    if of.unit == "8kB":
        return f"{int(of.boot) * 8}kB"
    return f"{of.boot}{of.unit}"
