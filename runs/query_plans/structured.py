"""EXPLAIN's formats JSON, YAML and XML, as the same nodes and lines that its text has."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from runs import foreign_json
from runs.query_plans.node import Node, Plan, PlanUnreadableError

# Shown by the node itself, not by a line of its own.
_SHOWN = frozenset(
    (
        "Node Type", "Strategy", "Partial Mode", "Parent Relationship", "Subplan Name",
        "Parallel Aware", "Async Capable", "Join Type", "Relation Name", "Schema", "Alias",
        "Index Name", "CTE Name", "Function Name", "Table Function Name", "Tuplestore Name",
        "Operation", "Command", "Custom Plan Provider", "Startup Cost", "Total Cost", "Plan Rows",
        "Plan Width", "Actual Startup Time", "Actual Total Time", "Actual Rows", "Actual Loops",
        "Plans", "Workers", "Scan Direction",
    )
)  # fmt: skip
_AGGREGATES = {"Sorted": "GroupAggregate", "Hashed": "HashAggregate", "Mixed": "MixedAggregate"}
_ON = ("Relation Name", "CTE Name", "Function Name", "Table Function Name", "Tuplestore Name")
# Values that the text format has in one line: (its name, (words of the line, name of the value)).
_LINES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Sort Method", (("", "Sort Method"), ("  {}: ", "Sort Space Used"))),
    ("Buckets", (("", "Hash Buckets"), ("  Batches: ", "Hash Batches"),
                 ("  Memory Usage: ", "Peak Memory Usage"))),
    ("Batches", (("", "HashAgg Batches"), ("  Memory Usage: ", "Peak Memory Usage"),
                 ("  Disk Usage: ", "Disk Usage"))),
    ("Hits", (("", "Cache Hits"), ("  Misses: ", "Cache Misses"),
              ("  Evictions: ", "Cache Evictions"), ("  Overflows: ", "Cache Overflows"),
              ("  Memory Usage: ", "Peak Memory Usage"))),
    ("Storage", (("", "Storage"), ("  Maximum Storage: ", "Maximum Storage"))),
)  # fmt: skip
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
    r"|Disk Usage|WAL .*+|.* (?:Blocks|Time|Pages))"
)
_JOINED = re.compile(
    r"(?:Shared|Local|Temp) (?:Hit|Read|Dirtied|Written) Blocks"
    r"|(?:(?:Shared|Local|Temp) )?I/O (?:Read|Write) Time|(?:Exact|Lossy) Heap Blocks"
    r"|WAL (?:Records|FPI|Bytes|Buffers Full|FPI Bytes)|Sort Space (?:Used|Type)"
    r"|Original Hash (?:Buckets|Batches)"
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
        index=str(given.get("Index Name", "")),
        role=str(given.get("Subplan Name", "")),
        startup_cost=_float(given.get("Startup Cost")),
        total_cost=_float(given.get("Total Cost")),
        estimated_rows=_float(given.get("Plan Rows")),
        startup_ms=_float(given.get("Actual Startup Time")) if ran else None,
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
    used = set()
    for name, parts in _LINES:
        if given.get(parts[0][1]) not in {None, 0}:
            used |= {key for _words, key in parts}
            yield name, _line(given, parts)
    for name, value in given.items():
        if name in _SHOWN or name in used or _JOINED.fullmatch(name) or _is_hidden(name, value):
            continue
        yield name, _text(value)
    yield from _counters(given)
    for worker in given.get("Workers") or ():
        yield from _worker(worker)


def _line(given: Mapping[str, Any], parts: tuple[tuple[str, str], ...]) -> str:
    text = ""
    for words, name in parts:
        value = given.get(name)
        if value in {None, 0} and words and name.endswith("Usage"):
            continue
        if value is not None:
            unit = "kB" if name in _KILOBYTES else ""
            text += words.format(given.get("Sort Space Type", "")) + f"{value}{unit}"
    return text


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
    ("Plan", "Planning Time", "Execution Time", "Total Runtime", "Settings", "Planning", "Triggers",
     "JIT", "Serialization")
)  # fmt: skip


def _foot(whole: Mapping[str, Any]) -> Iterator[str]:
    if settings := whole.get("Settings"):
        yield "Settings: " + ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    yield from (f"{name}: {_text(whole[name])}" for name in whole if name not in _OF_FOOT)
    planning = dict(whole.get("Planning") or {})
    memory = [f"{word}={planning.pop(f'Memory {word.title()}')}kB" for word in ("used", "allocated")
              if f"Memory {word.title()}" in planning]  # fmt: skip
    yield from (f"Planning: {name}: {value}" for name, value in _counters(planning))
    if memory:
        yield "Planning: Memory: " + "  ".join(memory)
    yield from (_trigger(each) for each in whole.get("Triggers") or ())
    yield from _jit(whole.get("JIT") or {})
    if serialized := whole.get("Serialization"):
        yield from _serialization(serialized)


def _trigger(given: Mapping[str, Any]) -> str:
    constraint = given.get("Constraint Name")
    name = f"for constraint {constraint}" if constraint else str(given.get("Trigger Name", ""))
    time = f"time={float(given['Time']):.3f} " if "Time" in given else ""
    calls = _plain(float(given.get("Calls", 0)))
    return f"Trigger {name} on {given.get('Relation', '')}: {time}calls={calls}"


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


def _is_hidden(name: str, value: Any) -> bool:
    """Whether the text format leaves the line out."""
    if value is False or value == "false":
        return True
    return _HIDDEN_ZEROS.fullmatch(name) is not None and str(value).strip("0.") == ""


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


_YAML = re.compile(r"\A( *+)(?:(-)(?: |\Z)|(\"[^\"]*+\"|[A-Za-z][^:]*+):(?: |\Z))?(.*)\Z")
# (column, "-" of an item or a name, value) of a line.
_Row = tuple[int, str, str]


def from_yaml(lines: list[str]) -> Any:
    """What EXPLAIN (FORMAT YAML) has printed: its values are numbers, words and JSON's strings."""
    rows = [row for line in lines if line.strip() for row in _rows(line)]
    whole, at = _block(rows, 0, -1, 0)
    if at < len(rows):
        raise ValueError(f"{rows[at][1]}: {rows[at][2]}"[:80])
    return whole


def _rows(line: str, begin: int = 0) -> Iterator[_Row]:
    """What a line says; an item with a name in it is two rows."""
    while (found := _YAML.match(line, 0)) and found[2]:
        column = begin + len(found[1])
        inner = _YAML.match(found[4])
        if inner is None or not (inner[2] or inner[3]):
            yield column, "-", found[4].strip()
            return
        yield column, "-", ""
        begin, line = column + 2, found[4]
    if found is None or not found[3]:
        raise ValueError(line.strip()[:80])
    yield begin + len(found[1]), found[3].strip('"'), found[4].strip()


def _block(rows: list[_Row], at: int, above: int, depth: int) -> tuple[Any, int]:
    """The list or group that begins there, and where it ends; None if there is none."""
    if depth > foreign_json.MOST_DEPTH:
        raise foreign_json.TooDeepError
    if at == len(rows) or rows[at][0] <= above:
        return None, at
    column, is_list = rows[at][0], rows[at][1] == "-"
    items: list[Any] = []
    members: dict[str, Any] = {}
    while at < len(rows) and rows[at][0] == column and (rows[at][1] == "-") == is_list:
        _column, name, text = rows[at]
        at += 1
        value: Any = _scalar(text)
        if not text:
            value, at = _block(rows, at, column, depth + 1)
        if is_list:
            items.append(value)
        else:
            members[name] = value
    return (items if is_list else members), at


def _scalar(text: str) -> Any:
    """A value as JSON has it, else the words themselves."""
    try:
        return foreign_json.loads(text)
    except foreign_json.TooDeepError:
        raise
    except ValueError:
        return text


_XML = re.compile(r"<(/?)([A-Za-z][\w-]{0,60}+)[^<>]{0,300}?(/?)>|([^<]++)")


def from_xml(text: str) -> Any:
    """What EXPLAIN (FORMAT XML) has printed. Its elements are values, lists or groups of those."""
    path: list[tuple[str, list[tuple[str, Any]], list[str]]] = [("", [], [])]
    for found in _XML.finditer(text):
        closes, name, is_empty, words = found[1], found[2], found[3], found[4]
        if words is not None:
            path[-1][2].append(words)
            continue
        if not closes:
            path.append((name, [], []))
            if len(path) > foreign_json.MOST_DEPTH:
                raise foreign_json.TooDeepError
        if closes or is_empty:
            if len(path) < 2 or path[-1][0] != name:
                raise ValueError(f"<{closes}{name}> closes nothing")
            _name, members, texts = path.pop()
            path[-1][1].append((name.replace("-", " "), _element(name, members, texts)))
    if len(path) > 1:
        raise ValueError(f"<{path[-1][0]}> is not closed")
    whole = dict(path[0][1]).get("explain")
    return whole if isinstance(whole, list) else [whole]


_XML_LISTS = frozenset(("Plans", "Workers", "Triggers", "Grouping-Sets", "explain"))
_NAMES = {"One Time Filter": "One-Time Filter"}


def _element(name: str, members: list[tuple[str, Any]], texts: list[str]) -> Any:
    if not members:
        return [] if name in _XML_LISTS else html.unescape("".join(texts)).strip()
    if name == "explain" and "Plan" in dict(members):  # auto_explain's has no Query around it
        return [dict(members)]
    if name in _XML_LISTS or all(each == "Item" for each, _value in members):
        return [value for _name, value in members]
    return {_NAMES.get(key, key.replace("I O ", "I/O ")): value for key, value in members}
