"""EXPLAIN's values, of JSON, YAML or XML, as the same nodes and lines that its text has."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from runs import foreign_json
from runs.query_plans.node import Node, Plan, PlanUnreadableError

# Shown by the node itself, not by a line of its own.
_SHOWN = frozenset(
    (
        "Node Type",
        "Strategy",
        "Partial Mode",
        "Parent Relationship",
        "Subplan Name",
        "Parallel Aware",
        "Async Capable",
        "Join Type",
        "Relation Name",
        "Schema",
        "Alias",
        "Index Name",
        "CTE Name",
        "Function Name",
        "Table Function Name",
        "Tuplestore Name",
        "Operation",
        "Command",
        "Custom Plan Provider",
        "Startup Cost",
        "Total Cost",
        "Plan Rows",
        "Plan Width",
        "Actual Startup Time",
        "Actual Total Time",
        "Actual Rows",
        "Actual Loops",
        "Plans",
        "Workers",
        "Scan Direction",
    )
)
# 9.3 has quotes here, as in its text.
_INDEX_9_3 = re.compile(r'\A"(.+)"\Z')
_AGGREGATES = {"Sorted": "GroupAggregate", "Hashed": "HashAggregate", "Mixed": "MixedAggregate"}
_ON = ("Relation Name", "CTE Name", "Function Name", "Table Function Name", "Tuplestore Name")
# Values that the text format has in one line: (its name, (words of the line, name of the value)).
_LINES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Sort Method", (("", "Sort Method"), ("  {}: ", "Sort Space Used"))),
    (
        "Buckets",
        (
            ("", "Hash Buckets"),
            ("  Batches: ", "Hash Batches"),
            ("  Memory Usage: ", "Peak Memory Usage"),
        ),
    ),
    (
        "Planned Partitions",
        (
            ("", "Planned Partitions"),
            ("  Batches: ", "HashAgg Batches"),
            ("  Memory Usage: ", "Peak Memory Usage"),
            ("  Disk Usage: ", "Disk Usage"),
        ),
    ),
    (
        "Batches",
        (
            ("", "HashAgg Batches"),
            ("  Memory Usage: ", "Peak Memory Usage"),
            ("  Disk Usage: ", "Disk Usage"),
        ),
    ),
    (
        "Hits",
        (
            ("", "Cache Hits"),
            ("  Misses: ", "Cache Misses"),
            ("  Evictions: ", "Cache Evictions"),
            ("  Overflows: ", "Cache Overflows"),
            ("  Memory Usage: ", "Peak Memory Usage"),
        ),
    ),
    ("Storage", (("", "Storage"), ("  Maximum Storage: ", "Maximum Storage"))),
)
_KILOBYTES = frozenset(
    (
        "Sort Space Used",
        "Peak Memory Usage",
        "Disk Usage",
        "Maximum Storage",
        "Average Sort Space Used",
    )
)
_HIDDEN_ZEROS = re.compile(
    r"\A(?:Rows Removed by .*+|Planned Partitions|(?:Original )?Hash\w*+ (?:Buckets|Batches)"
    r"|Subplans Removed|Cache \w++|Peak Memory Usage|Disk Usage|WAL .*+|.* (?:Blocks|Time|Pages))"
)
_MERGED = ("Inserted", "Updated", "Deleted", "Skipped")
_JOINED = re.compile(
    r"(?:Shared|Local|Temp) (?:Hit|Read|Dirtied|Written) Blocks"
    r"|(?:(?:Shared|Local|Temp) )?I/O (?:Read|Write) Time|(?:Exact|Lossy) Heap Blocks"
    r"|WAL (?:Records|FPI|Bytes|Buffers Full|FPI Bytes)|Sort Space (?:Used|Type)"
    r"|Original Hash (?:Buckets|Batches)|Sampling \w++|Repeatable Seed"
)


def read_structured(whole: Any) -> Plan:
    """The plan in what EXPLAIN has printed. Raises PlanUnreadableError for anything else."""
    if isinstance(whole, list) and sum(isinstance(e, dict) and "Plan" in e for e in whole) > 1:
        raise PlanUnreadableError("More than one plan is in this text. Paste one plan at a time.")
    try:
        first = _document(whole)
    except ValueError:
        first = None
    if not isinstance(first, dict) or not isinstance(first.get("Plan"), dict):
        raise PlanUnreadableError("This is no plan: it has no object “Plan”.")
    execution = first.get("Execution Time", first.get("Total Runtime"))
    try:
        return Plan(
            _node(first["Plan"]),
            _float(first.get("Planning Time")),
            _float(execution),
            tuple(_foot(first)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanUnreadableError(f"This plan has a node that cannot be read: {error}") from error


def _document(whole: Any) -> Any:
    """The object of a plan, also in the rows of a client, and of its first node alone."""
    for _layer in range(4):
        if isinstance(whole, list) and whole:
            whole = whole[0]
        elif isinstance(whole, dict) and len(whole) == 1 and "Plan" not in whole:
            whole = next(iter(whole.values()))
        elif isinstance(whole, str):
            whole = foreign_json.loads(whole)
    return {"Plan": whole} if isinstance(whole, dict) and "Node Type" in whole else whole


def _node(given: Mapping[str, Any]) -> Node:
    loops = given.get("Actual Loops")
    ran = loops is not None and float(loops) > 0
    return Node(
        kind=_kind(given),
        on=_on(given),
        index=_INDEX_9_3.sub(r"\1", str(given.get("Index Name", ""))).replace('""', '"'),
        role=str(given.get("Subplan Name", "")),
        total_cost=_float(given.get("Total Cost")),
        estimated_rows=_float(given.get("Plan Rows")),
        total_ms=_float(given.get("Actual Total Time")) if ran else None,
        rows=_float(given.get("Actual Rows")) if ran else None,
        loops=int(loops) if loops is not None else None,
        details=tuple(_details(given)),
        children=tuple(_node(each) for each in given.get("Plans", ())),
    )


def _kind(given: Mapping[str, Any]) -> str:
    kind = str(given["Node Type"])
    operation = str(given.get("Operation", "Select"))
    join = str(given.get("Join Type", "Inner"))
    if kind == "Aggregate":
        kind = _AGGREGATES.get(str(given.get("Strategy")), kind)
        if (mode := given.get("Partial Mode", "Simple")) != "Simple":
            kind = f"{mode} {kind}"
    elif kind == "ModifyTable":
        kind = operation
    elif kind == "Foreign Scan" and operation != "Select":
        kind = f"Foreign {operation}"
    elif kind == "Custom Scan":
        kind = f"Custom Scan ({given.get('Custom Plan Provider', '')})"
    elif kind == "SetOp":
        kind = f"{'Hash' if given.get('Strategy') == 'Hashed' else ''}SetOp {given['Command']}"
    elif join != "Inner":
        kind = f"{kind.removesuffix(' Join')} {join} Join"
    elif kind in {"Hash", "Merge"} and "Join Type" in given:
        kind = f"{kind} Join"
    if given.get("Scan Direction") == "Backward":
        kind = f"{kind} Backward"
    kind = f"Async {kind}" if _is_true(given.get("Async Capable")) else kind
    return f"Parallel {kind}" if _is_true(given.get("Parallel Aware")) else kind.strip()


def _on(given: Mapping[str, Any]) -> str:
    name = next((str(given[key]) for key in _ON if key in given), "")
    alias = str(given.get("Alias", ""))
    if not name:
        return alias
    whole = f"{given['Schema']}.{name}" if "Schema" in given else name
    return f"{whole} {alias}" if alias and alias != name else whole


def _details(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of a node as the text format has them."""
    used = set[str]()
    for name, parts in _LINES:
        begins, decides = parts[0][1], "Cache Misses" if name == "Hits" else parts[0][1]
        if begins not in used and not _is_nothing(given.get(decides)):
            used |= {key for _words, key in parts}
            yield name, _line(given, parts)
    if "Tuples Skipped" in given:  # MERGE
        used |= {f"Tuples {word}" for word in _MERGED}
    for name, value in given.items():
        if name not in used | _SHOWN and not _JOINED.fullmatch(name):
            yield from _lines_of(name, value, given)
    yield from _counters(given)
    for worker in given.get("Workers") or ():
        yield from _worker(worker)


def _lines_of(name: str, value: Any, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if name == "Grouping Sets":
        yield from _grouping_sets(value)
    elif name == "Target Tables":
        for table in value:
            yield "", f"{_kind(given)} on {_on(table)}"
            yield from ((key, _text(table[key])) for key in table if key not in _SHOWN)
    elif name.endswith(" Groups") and not isinstance(value, str):
        yield from _sort_groups(name, value)
    elif not _is_hidden(name, value, given):
        yield name, _text(value)


def _line(given: Mapping[str, Any], parts: tuple[tuple[str, str], ...]) -> str:
    text = ""
    was_resized = any(
        given.get(f"Original {name}", given.get(name)) != given.get(name) for _words, name in parts
    )
    for words, name in parts:
        value = given.get(name)
        if value is None or (name == "Disk Usage" and _is_nothing(value)):
            continue
        unit = "kB" if name in _KILOBYTES else ""
        text += words.format(given.get("Sort Space Type", "")) + f"{value}{unit}"
        if was_resized and f"Original {name}" in given:
            text += f" (originally {given[f'Original {name}']})"
    return text


def _grouping_sets(sets: Any) -> Iterator[tuple[str, str]]:
    for name, value in (pair for each in sets for pair in each.items()):
        for keys in value if name.endswith(" Keys") else (value,):
            yield name.removesuffix("s"), _text(keys or "()")


def _sort_groups(name: str, given: Any) -> Iterator[tuple[str, str]]:
    """Those of an incremental sort; XML has both under one name, and the kinds of space as well."""
    groups = given if isinstance(given, list) else [given]
    names = ("Full-sort Groups", "Pre-sorted Groups") if name.startswith("Inc") else (name,)
    for title, group in zip(names, groups, strict=False):
        methods = group["Sort Methods Used"]
        plural = "s" if len(methods) > 1 else ""
        text = f"{group['Group Count']}  Sort Method{plural}: {', '.join(methods)}"
        for kind in ("Memory", "Disk"):
            key = (
                "Sort Space" if kind == "Memory" and "Sort Space" in group else f"Sort Space {kind}"
            )
            for word in ("Average", "Peak") if key in group else ():
                text += f"  {word} {kind}: {group[key][f'{word} Sort Space Used']}kB"
        yield title, text


def _counters(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Buffers, I/O times, heap blocks and WAL, which the text has in a line each."""
    kinds = ((kind, f"{kind} {{}} Blocks") for kind in ("Shared", "Local", "Temp"))
    groups = [
        (kind.lower(), _counted(given, pattern, ("Hit", "Read", "Dirtied", "Written")))
        for kind, pattern in kinds
    ]
    if buffers := ", ".join(f"{kind} {text}" for kind, text in groups if text):
        yield "Buffers", buffers
    times = [
        (kind.lower(), _counted(given, f"{kind} I/O {{}} Time".strip(), ("Read", "Write")))
        for kind in ("", "Shared", "Local", "Temp")
    ]
    if timings := ", ".join(f"{kind} {text}".strip() for kind, text in times if text):
        yield "I/O Timings", timings
    if blocks := _counted(given, "{} Heap Blocks", ("Exact", "Lossy")):
        yield "Heap Blocks", blocks
    if "Tuples Skipped" in given and (tuples := _counted(given, "Tuples {}", _MERGED)):
        yield "Tuples", tuples
    if method := given.get("Sampling Method"):
        seed = f" REPEATABLE ({given['Repeatable Seed']})" if "Repeatable Seed" in given else ""
        yield "Sampling", f"{method} ({_text(given.get('Sampling Parameters', ''))}){seed}"
    if wal := _counted(given, "WAL {}", ("Records", "FPI", "Bytes", "FPI Bytes", "Buffers Full")):
        yield "WAL", wal


def _counted(given: Mapping[str, Any], pattern: str, names: tuple[str, ...]) -> str:
    values = ((name, _float(given.get(pattern.format(name)))) for name in names)
    return " ".join(f"{name.lower()}={_plain(value)}" for name, value in values if value)


def _worker(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = f"Worker {given.get('Worker Number')}"
    if given.get("Actual Loops"):
        times = ""
        if "Actual Total Time" in given:
            ends = (float(given[f"Actual {end} Time"]) for end in ("Startup", "Total"))
            times = "time={:.3f}..{:.3f} ".format(*ends)
        yield name, f"actual {times}rows={given['Actual Rows']} loops={given['Actual Loops']}"
    rest = {key: value for key, value in given.items() if key != "Worker Number"}
    for key, value in _details(rest):
        yield name, f"{key}: {value}"


_OF_FOOT = frozenset(
    (
        "Plan",
        "Planning Time",
        "Execution Time",
        "Total Runtime",
        "Settings",
        "Planning",
        "Triggers",
        "JIT",
        "Serialization",
    )
)


def _foot(whole: Mapping[str, Any]) -> Iterator[str]:
    if settings := whole.get("Settings"):
        yield "Settings: " + ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    yield from (f"{name}: {_text(whole[name])}" for name in whole if name not in _OF_FOOT)
    planning = dict(whole.get("Planning") or {})
    memory = [
        f"{word}={planning.pop(f'Memory {word.title()}')}kB"
        for word in ("used", "allocated")
        if f"Memory {word.title()}" in planning
    ]
    yield from (f"Planning: {name}: {value}" for name, value in _counters(planning))
    if memory:
        yield "Planning: Memory: " + "  ".join(memory)
    is_verbose = "Schema" in whole["Plan"] or "Output" in whole["Plan"]
    yield from _triggers(whole.get("Triggers") or (), is_verbose=is_verbose)
    yield from _jit(whole.get("JIT") or {})
    if serialized := whole.get("Serialization"):
        yield from _serialization(serialized)


def _triggers(fired: Any, *, is_verbose: bool) -> Iterator[str]:
    """Their lines; the text names a trigger of a constraint with VERBOSE only."""
    several = len({each.get("Relation") for each in fired}) > 1
    for given in fired:
        name, constraint = str(given.get("Trigger Name", "")), given.get("Constraint Name")
        if constraint:
            name = f"{name if is_verbose else ''} for constraint {constraint}".strip()
        name += f" on {given.get('Relation', '')}" if several else ""
        time = f"time={float(given['Time']):.3f} " if "Time" in given else ""
        yield f"Trigger {name}: {time}calls={_plain(float(given.get('Calls', 0)))}"


def _jit(given: Mapping[str, Any]) -> Iterator[str]:
    if "Functions" in given:
        yield f"JIT: Functions: {given['Functions']}"
    if options := given.get("Options"):
        words = (f"{name} {str(value).lower()}" for name, value in options.items())
        yield f"JIT: Options: {', '.join(words)}"
    if timing := given.get("Timing"):
        yield "JIT: Timing: " + ", ".join(_jit_time(*each) for each in timing.items())


def _jit_time(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        return f"{name} {float(value):.3f} ms"
    deform = f" (Deform {float(value.get('Deform', 0)):.3f} ms)"
    return f"{name} {float(value.get('Total', 0)):.3f} ms{deform}"


def _serialization(given: Mapping[str, Any]) -> Iterator[str]:
    time = f"time={float(given['Time']):.3f} ms  " if "Time" in given else ""
    output, form = given.get("Output Volume", 0), str(given.get("Format", "")).lower()
    yield f"Serialization: {time}output={output}kB  format={form}"
    yield from (f"Serialization: {name}: {value}" for name, value in _counters(given))


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _is_hidden(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    """Whether the text format leaves the line out."""
    if value is False or (value == "false" and not name.endswith(("Filter", "Cond"))):
        return True
    if name == "Inner Unique" and "Output" not in given:  # it is of VERBOSE
        return True
    return _HIDDEN_ZEROS.fullmatch(name) is not None and _is_nothing(value)


def _is_nothing(value: Any) -> bool:
    return value is None or str(value).strip("0.") == ""


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _plain(value: float | None) -> str:
    return f"{value:.3f}" if value is not None and value % 1 else f"{value or 0:.0f}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(_text(each) for each in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
