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
_AGGREGATES = {
    "Sorted": "GroupAggregate",
    "Hashed": "HashAggregate",
    "Mixed": "MixedAggregate",
}
_ON = (
    "Relation Name",
    "CTE Name",
    "Function Name",
    "Table Function Name",
    "Tuplestore Name",
)
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


# Rows, columns and strings around a plan.
_MOST_LAYERS = 6


def read_structured(document: Any) -> Plan:
    """The plan in what EXPLAIN has printed. Raises PlanUnreadableError for anything else."""
    if (
        isinstance(document, list)
        and sum(isinstance(e, dict) and "Plan" in e for e in document) > 1
    ):
        raise PlanUnreadableError(
            "More than one plan is in this text. Paste one plan at a time."
        )
    try:
        plan_object = _document(document)
    except ValueError:
        plan_object = None
    if not isinstance(plan_object, dict) or not isinstance(
        plan_object.get("Plan"), dict
    ):
        raise PlanUnreadableError("This is no plan: it has no object “Plan”.")
    execution = plan_object.get("Execution Time", plan_object.get("Total Runtime"))
    try:
        return Plan(
            _node(plan_object["Plan"]),
            _float(plan_object.get("Planning Time")),
            _float(execution),
            tuple(_foot(plan_object)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanUnreadableError(
            f"This plan has a node that cannot be read: {error}"
        ) from error


def _document(document: Any) -> Any:
    """The object of a plan, also in the rows of a client, and of its first node alone."""
    for _layer in range(4):
        if isinstance(document, list) and document:
            document = document[0]
        elif (
            isinstance(document, dict) and len(document) == 1 and "Plan" not in document
        ):
            document = next(iter(document.values()))
        elif isinstance(document, str):
            document = foreign_json.loads(document)
    if isinstance(document, dict) and "Node Type" in document:
        return {"Plan": document}
    if isinstance(document, dict) and "Plan" not in document:
        return next(_within(document, _MOST_LAYERS), document)
    return document


def _within(document: Any, layers: int) -> Iterator[Any]:
    """The objects of plans within the rows of a client, as objects or as strings of JSON."""
    if isinstance(document, str):
        if '"Plan"' not in document:
            return
        try:
            document = foreign_json.loads(document)
        except ValueError:
            return
    if isinstance(document, dict) and isinstance(document.get("Plan"), dict):
        yield document
    elif layers and isinstance(document, dict | list):
        for value in document.values() if isinstance(document, dict) else document:
            yield from _within(value, layers - 1)


def _node(fields: Mapping[str, Any]) -> Node:
    loops = fields.get("Actual Loops")
    ran = loops is not None and float(loops) > 0
    return Node(
        kind=_kind(fields),
        on=_relation_words(fields),
        index=_INDEX_9_3.sub(r"\1", str(fields.get("Index Name", ""))).replace(
            '""', '"'
        ),
        role=str(fields.get("Subplan Name", "")),
        total_cost=_float(fields.get("Total Cost")),
        estimated_rows=_float(fields.get("Plan Rows")),
        total_ms=_float(fields.get("Actual Total Time")) if ran else None,
        rows=_float(fields.get("Actual Rows")) if ran else None,
        loops=int(loops) if loops is not None else None,
        details=tuple(_details(fields)),
        children=tuple(_node(child) for child in fields.get("Plans", ())),
    )


def _kind(fields: Mapping[str, Any]) -> str:
    kind = str(fields["Node Type"])
    operation = str(fields.get("Operation", "Select"))
    join = str(fields.get("Join Type", "Inner"))
    if kind == "Aggregate":
        kind = _AGGREGATES.get(str(fields.get("Strategy")), kind)
        if (mode := fields.get("Partial Mode", "Simple")) != "Simple":
            kind = f"{mode} {kind}"
    elif kind == "ModifyTable":
        kind = operation
    elif kind == "Foreign Scan" and operation != "Select":
        kind = f"Foreign {operation}"
    elif kind == "Custom Scan":
        kind = f"Custom Scan ({fields.get('Custom Plan Provider', '')})"
    elif kind == "SetOp":
        kind = f"{'Hash' if fields.get('Strategy') == 'Hashed' else ''}SetOp {fields['Command']}"
    elif join != "Inner":
        kind = f"{kind.removesuffix(' Join')} {join} Join"
    elif kind in {"Hash", "Merge"} and "Join Type" in fields:
        kind = f"{kind} Join"
    if fields.get("Scan Direction") == "Backward":
        kind = f"{kind} Backward"
    kind = f"Async {kind}" if _is_true(fields.get("Async Capable")) else kind
    return (
        f"Parallel {kind}" if _is_true(fields.get("Parallel Aware")) else kind.strip()
    )


def _relation_words(qualified: Mapping[str, Any]) -> str:
    name = next((str(qualified[key]) for key in _ON if key in qualified), "")
    alias = str(qualified.get("Alias", ""))
    if not name:
        return alias
    fields = f"{qualified['Schema']}.{name}" if "Schema" in qualified else name
    return f"{fields} {alias}" if alias and alias != name else fields


def _details(node_fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of a node as the text format has them."""
    used = set[str]()
    for name, line_sources in _LINES:
        begins, decides = (
            line_sources[0][1],
            "Cache Misses" if name == "Hits" else line_sources[0][1],
        )
        if begins not in used and not _is_nothing(node_fields.get(decides)):
            used |= {key for _words, key in line_sources}
            yield name, _line(node_fields, line_sources)
    if "Tuples Skipped" in node_fields:  # MERGE
        used |= {f"Tuples {word}" for word in _MERGED}
    for name, value in node_fields.items():
        if name not in used | _SHOWN and not _JOINED.fullmatch(name):
            yield from _lines_of(name, value, node_fields)
    yield from _counters(node_fields)
    for worker in node_fields.get("Workers") or ():
        yield from _worker(worker)


def _lines_of(
    name: str, value: Any, fields: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    if name == "Grouping Sets":
        yield from _grouping_sets(value)
    elif name == "Target Tables":
        for table in value:
            yield "", f"{_kind(fields)} on {_relation_words(table)}"
            yield from ((key, _text(table[key])) for key in table if key not in _SHOWN)
    elif name.endswith(" Groups") and not isinstance(value, str):
        yield from _sort_groups(name, value)
    elif not _is_hidden(name, value, fields):
        yield name, _text(value)


def _line(fields: Mapping[str, Any], alternatives: tuple[tuple[str, str], ...]) -> str:
    text = ""
    was_resized = any(
        fields.get(f"Original {name}", fields.get(name)) != fields.get(name)
        for _words, name in alternatives
    )
    for words, name in alternatives:
        value = fields.get(name)
        if value is None or (name == "Disk Usage" and _is_nothing(value)):
            continue
        unit = "kB" if name in _KILOBYTES else ""
        text += words.format(fields.get("Sort Space Type", "")) + f"{value}{unit}"
        if was_resized and f"Original {name}" in fields:
            text += f" (originally {fields[f'Original {name}']})"
    return text


def _grouping_sets(sets: Any) -> Iterator[tuple[str, str]]:
    for name, value in (pair for grouping_set in sets for pair in grouping_set.items()):
        for keys in value if name.endswith(" Keys") else (value,):
            yield name.removesuffix("s"), _text(keys or "()")


def _sort_groups(name: str, sort_groups: Any) -> Iterator[tuple[str, str]]:
    """Those of an incremental sort; XML has both under one name, and the kinds of space as well."""
    groups = sort_groups if isinstance(sort_groups, list) else [sort_groups]
    names = (
        ("Full-sort Groups", "Pre-sorted Groups") if name.startswith("Inc") else (name,)
    )
    for title, group in zip(names, groups, strict=False):
        methods = group["Sort Methods Used"]
        plural = "s" if len(methods) > 1 else ""
        text = f"{group['Group Count']}  Sort Method{plural}: {', '.join(methods)}"
        for kind in ("Memory", "Disk"):
            key = (
                "Sort Space"
                if kind == "Memory" and "Sort Space" in group
                else f"Sort Space {kind}"
            )
            for word in ("Average", "Peak") if key in group else ():
                text += f"  {word} {kind}: {group[key][f'{word} Sort Space Used']}kB"
        yield title, text


def _counters(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Buffers, I/O times, heap blocks and WAL, which the text has in a line each."""
    kinds = ((kind, f"{kind} {{}} Blocks") for kind in ("Shared", "Local", "Temp"))
    groups = [
        (kind.lower(), _counted(fields, pattern, ("Hit", "Read", "Dirtied", "Written")))
        for kind, pattern in kinds
    ]
    if buffers := ", ".join(f"{kind} {text}" for kind, text in groups if text):
        yield "Buffers", buffers
    times = [
        (
            kind.lower(),
            _counted(fields, f"{kind} I/O {{}} Time".strip(), ("Read", "Write")),
        )
        for kind in ("", "Shared", "Local", "Temp")
    ]
    if timings := ", ".join(f"{kind} {text}".strip() for kind, text in times if text):
        yield "I/O Timings", timings
    if blocks := _counted(fields, "{} Heap Blocks", ("Exact", "Lossy")):
        yield "Heap Blocks", blocks
    if "Tuples Skipped" in fields and (
        tuples := _counted(fields, "Tuples {}", _MERGED)
    ):
        yield "Tuples", tuples
    if method := fields.get("Sampling Method"):
        seed = (
            f" REPEATABLE ({fields['Repeatable Seed']})"
            if "Repeatable Seed" in fields
            else ""
        )
        yield (
            "Sampling",
            f"{method} ({_text(fields.get('Sampling Parameters', ''))}){seed}",
        )
    if wal := _counted(
        fields, "WAL {}", ("Records", "FPI", "Bytes", "FPI Bytes", "Buffers Full")
    ):
        yield "WAL", wal


def _counted(fields: Mapping[str, Any], pattern: str, names: tuple[str, ...]) -> str:
    values = ((name, _float(fields.get(pattern.format(name)))) for name in names)
    return " ".join(
        f"{name.lower()}={_plain(value)}" for name, value in values if value
    )


def _worker(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = f"Worker {fields.get('Worker Number')}"
    if fields.get("Actual Loops"):
        times = ""
        if "Actual Total Time" in fields:
            ends = (float(fields[f"Actual {end} Time"]) for end in ("Startup", "Total"))
            times = "time={:.3f}..{:.3f} ".format(*ends)
        yield (
            name,
            f"actual {times}rows={fields['Actual Rows']} loops={fields['Actual Loops']}",
        )
    worker_fields = {
        key: value for key, value in fields.items() if key != "Worker Number"
    }
    for key, value in _details(worker_fields):
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


def _foot(document: Mapping[str, Any]) -> Iterator[str]:
    if settings := document.get("Settings"):
        yield "Settings: " + ", ".join(
            f"{name} = '{value}'" for name, value in settings.items()
        )
    yield from (
        f"{name}: {_text(document[name])}" for name in document if name not in _OF_FOOT
    )
    planning = dict(document.get("Planning") or {})
    memory = [
        f"{word}={planning.pop(f'Memory {word.title()}')}kB"
        for word in ("used", "allocated")
        if f"Memory {word.title()}" in planning
    ]
    yield from (f"Planning: {name}: {value}" for name, value in _counters(planning))
    if memory:
        yield "Planning: Memory: " + "  ".join(memory)
    is_verbose = "Schema" in document["Plan"] or "Output" in document["Plan"]
    yield from _triggers(document.get("Triggers") or (), is_verbose=is_verbose)
    yield from _jit(document.get("JIT") or {})
    if serialized := document.get("Serialization"):
        yield from _serialization(serialized)


def _triggers(fired: Any, *, is_verbose: bool) -> Iterator[str]:
    """Their lines; the text names a trigger of a constraint with VERBOSE only."""
    several = len({trigger.get("Relation") for trigger in fired}) > 1
    for trigger in fired:
        name, constraint = (
            str(trigger.get("Trigger Name", "")),
            trigger.get("Constraint Name"),
        )
        if constraint:
            name = f"{name if is_verbose else ''} for constraint {constraint}".strip()
        name += f" on {trigger.get('Relation', '')}" if several else ""
        time = f"time={float(trigger['Time']):.3f} " if "Time" in trigger else ""
        yield f"Trigger {name}: {time}calls={_plain(float(trigger.get('Calls', 0)))}"


def _jit(fields: Mapping[str, Any]) -> Iterator[str]:
    if "Functions" in fields:
        yield f"JIT: Functions: {fields['Functions']}"
    if options := fields.get("Options"):
        words = (f"{name} {str(value).lower()}" for name, value in options.items())
        yield f"JIT: Options: {', '.join(words)}"
    if timing := fields.get("Timing"):
        yield "JIT: Timing: " + ", ".join(_jit_time(*phase) for phase in timing.items())


def _jit_time(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        return f"{name} {float(value):.3f} ms"
    deform = f" (Deform {float(value.get('Deform', 0)):.3f} ms)"
    return f"{name} {float(value.get('Total', 0)):.3f} ms{deform}"


def _serialization(fields: Mapping[str, Any]) -> Iterator[str]:
    time = f"time={float(fields['Time']):.3f} ms  " if "Time" in fields else ""
    output, form = fields.get("Output Volume", 0), str(fields.get("Format", "")).lower()
    yield f"Serialization: {time}output={output}kB  format={form}"
    yield from (f"Serialization: {name}: {value}" for name, value in _counters(fields))


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"


def _is_hidden(name: str, value: Any, fields: Mapping[str, Any]) -> bool:
    """Whether the text format leaves the line out."""
    if value is False or (value == "false" and not name.endswith(("Filter", "Cond"))):
        return True
    if name == "Inner Unique" and "Output" not in fields:  # it is of VERBOSE
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
        return ", ".join(_text(element) for element in value)
    return (
        json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    )
