"""One plan in the layouts in which people paste it: read whole, or refused with the reason."""

# ruff: noqa: E501 - plans are wide.
import csv
import html
import io
import json
import textwrap
from contextlib import suppress

import pytest

from runs.query_plans import PlanUnreadableError
from runs.query_plans.node import MOST_CHARACTERS
from runs.query_plans.reading import read
from tests.patterns import min_of

PLAN = """\
Sort  (cost=114.78..114.80 rows=10 width=12) (actual time=12.596..12.599 rows=10 loops=1)
  Sort Key: (count(*))
  Sort Method: quicksort  Memory: 25kB
  ->  HashAggregate  (cost=114.51..114.61 rows=10 width=12) (actual time=12.550..12.554 rows=10 loops=1)
        Group Key: b.shelf
        ->  Hash Join  (cost=52.99..114.53 rows=1996 width=4) (actual time=1.253..9.756 rows=1996 loops=1)
              Hash Cond: (l.item = b.id)
              ->  Seq Scan on line l  (cost=0.00..39.00 rows=2000 width=4) (actual time=0.023..1.409 rows=2000 loops=1)
              ->  Hash  (cost=40.50..40.50 rows=999 width=8) (actual time=1.150..1.151 rows=1000 loops=1)
                    ->  Seq Scan on book b  (cost=0.00..40.50 rows=999 width=8) (actual time=0.011..0.782 rows=1000 loops=1)
                          Filter: (name <> 'a -> (b'::text)
Settings: max_parallel_workers_per_gather = '0', work_mem = '5MB'
Planning:
  Buffers: shared hit=129
Planning Time: 0.739 ms
Execution Time: 24.600 ms"""
LINES = PLAN.split("\n")
KINDS = ["Sort", "HashAggregate", "Hash Join", "Seq Scan", "Hash", "Seq Scan"]
WIDTH = max(map(len, LINES)) + 2


def node(kind, *below, **more):
    figures = {
        "Startup Cost": 1.0,
        "Total Cost": 2.0,
        "Plan Rows": 1,
        "Actual Startup Time": 0.1,
        "Actual Total Time": 0.2,
        "Actual Rows": 1,
        "Actual Loops": 1,
    }
    return {
        "Node Type": kind,
        **figures,
        **more,
        **({"Plans": list(below)} if below else {}),
    }


DOCUMENT = [
    {
        "Plan": node(
            "Sort",
            node(
                "Aggregate",
                node(
                    "Hash Join",
                    node("Seq Scan", **{"Relation Name": "line", "Alias": "l"}),
                    node(
                        "Hash",
                        node(
                            "Seq Scan",
                            **{
                                "Relation Name": "book",
                                "Filter": "(a <> 'a -> b'::text)",
                            },
                        ),
                    ),
                    **{"Join Type": "Inner"},
                ),
                Strategy="Hashed",
            ),
        ),
        "Planning Time": 0.1,
        "Execution Time": 0.3,
    }
]
JSON = json.dumps(DOCUMENT, indent=2)


def psql(
    lines,
    *,
    border=1,
    rule="-",
    bar="|",
    corner="+",
    mark="+",
    count="(16 rows)",
    sep=None,
):
    inner = max(map(len, lines)) + 2
    rows = [f" {line}".ljust(inner) for line in lines]
    if border == 2:
        rule = corner + rule * inner + corner
        rows = [f"{bar}{row}{bar}" for row in rows]
        return "\n".join(
            [
                rule,
                f"{bar}{'QUERY PLAN'.center(inner)}{bar}",
                sep or rule,
                *rows,
                rule,
                count,
            ]
        )
    if len(lines) and lines[0][:1] in "[{":
        rows = [row[:-1] + mark for row in rows[:-1]] + [rows[-1]]
        count = "(1 row)"
    return "\n".join(["QUERY PLAN".center(inner), rule * inner, *rows, count, ""])


def wrapped(width, *, begin=".", end="."):
    rows = []
    for line in LINES:
        parts = [line[at : at + width] for at in range(0, len(line), width)]
        for number, part in enumerate(parts):
            row = (begin if number else " ") + part.ljust(width)
            rows.append(row + (end if number < len(parts) - 1 else ""))
    return "\n".join(["QUERY PLAN".center(width), "-" * width, *rows, "(16 rows)"])


def hard(lines, width):
    return "\n".join(
        line[at : at + width] for line in lines for at in range(0, len(line), width)
    )


def soft(lines, width):
    return "\n".join(
        part
        for line in lines
        for part in textwrap.wrap(
            line,
            width,
            break_long_words=False,
            drop_whitespace=True,
            replace_whitespace=False,
        )
    )


def as_csv(*rows):
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()


PROMPT = "shop=> explain (analyze, settings)\nshop-> select 1\nshop-> from book b;\n"
STAMP = "2026-03-04 05:06:07.890 UTC"
LOGGED = f"duration: 51.234 ms  plan:\nQuery Text: select 1\n  from book\n{PLAN}"
DOUBLE = {"rule": "═", "bar": "║", "corner": "╬"}


def as_xml(given):
    """A node as EXPLAIN (FORMAT XML) writes it."""
    inner = "".join(
        f"<{key.replace(' ', '-')}>{html.escape(str(value))}</{key.replace(' ', '-')}>\n"
        for key, value in given.items()
        if key != "Plans"
    )
    below = "".join(map(as_xml, given.get("Plans", ())))
    return (
        f"<Plan>\n{inner}"
        + (f"<Plans>\n{below}</Plans>\n" if below else "")
        + "</Plan>\n"
    )


AS_XML = (
    '<explain xmlns="http://www.postgresql.org/2009/explain">\n<Query-Text>select 1</Query-Text>\n'
    + as_xml(DOCUMENT[0]["Plan"])
    + "</explain>"
)
LAYOUTS = {
    "as it is": PLAN,
    "psql": psql(LINES),
    "psql of another language": psql(LINES, count="(16 Zeilen)") + "\nZeit: 51,876 ms",
    "psql in Japanese": psql(LINES, count="(16 行)") + "\n時間: 51.876 ミリ秒",
    "border 2": psql(LINES, border=2),
    "border 2 in unicode": psql(LINES, border=2, rule="─", bar="│", corner="┼"),
    "border 2 doubled": psql(LINES, border=2, sep="╟" + "─" * WIDTH + "╢", **DOUBLE),
    "unicode": psql(LINES, rule="─"),
    "wrapped": wrapped(60),
    "wrapped in unicode": wrapped(70, begin="…", end="…"),
    "expanded": "\n".join(f"-[ RECORD {n} ]{'-' * 60}\nQUERY PLAN | {line}" for n, line in enumerate(LINES, 1)),
    "expanded without border": "\n".join(f"* Record {n}\nQUERY PLAN {line}" for n, line in enumerate(LINES, 1)),
    "expanded, in a mail": "\n".join(f">> * Record {n}\n>> QUERY PLAN {line}" for n, line in enumerate(LINES, 1)),
    "expanded and wrapped": "\n".join(f"| QUERY PLAN | {line[:70]:70} |" + f"\n|            ; {line[70:]:70} |" * (len(line) > 70)
                                       for line in LINES),
    "with a prompt": PROMPT + psql(LINES) + "\nTime: 51.876 ms\nshop=> \n",
    "with a statement": "EXPLAIN ANALYZE\nSELECT *\nFROM book b;\n\n" + PLAN,
    "Windows": psql(LINES).replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + PLAN,
    "no-break spaces": PLAN.replace(" ", "\u00a0"),
    "coloured": "\n".join(f"\x1b[32m{line}\x1b[0m" for line in LINES),
    "indented": textwrap.indent(PLAN, "        "),
    "HTML": "<table><tr><th>QUERY PLAN</th></tr>\n" + "\n".join(
        f"<tr valign=\"top\"><td>{html.escape(line).replace(' ', '&nbsp;')}</td></tr>" for line in LINES
    ) + "\n</table>\n<p>(16 rows)<br />\n</p>",
    "double quotes": "\n".join(f'"{line}"' for line in ["QUERY PLAN", *LINES]),
    "single quotes": "\n".join("'" + line.replace("'", "''") + "'" for line in LINES),
    "CSV of lines": as_csv(["QUERY PLAN"], *([line] for line in LINES)),
    "a mail": textwrap.indent(PLAN, "> "),
    "an answered mail": textwrap.indent(psql(LINES), "> > ", lambda line: True),
    "a mail, cut": hard(LINES, 72),
    "a mail, broken": soft(LINES, 76),
    "a quoted mail, broken": textwrap.indent(soft(LINES, 74), "> "),
    "comments of SQL": "\n".join(f"-- {line}" for line in LINES),
    "comments of a shell": "\n".join(f"# {line}" for line in psql(LINES).split("\n")),
    "a thread": textwrap.indent(PLAN, "> > > > ", lambda line: True),
    "a fence": f"Here it is:\n\n```text\n{psql(LINES)}```\n\nWhy is it slow?\n",
    "a ticket": f"{{noformat}}\n{PLAN}\n{{noformat}}",
    "a markdown table": "\n".join(["| QUERY PLAN |", "|---|", *(f"| {line} |" for line in LINES)]),
    "a log": f"{STAMP} [4711] u@db LOG:  " + LOGGED.replace("\n", "\n\t"),
    "a csvlog": as_csv([STAMP, "u", "db", "4711", "[local]", LOGGED, "", "psql"]),
    "a jsonlog": json.dumps({"timestamp": STAMP, "message": LOGGED, "pid": 4711}),
    "a container's log": "\n".join(f"db-1  | {line}" for line in
                                    (f"{STAMP} LOG:  " + LOGGED.replace("\n", "\n\t")).split("\n")),
    "a pod's log": "\n".join(f"2026-03-04T05:06:07.123456Z stderr F {line}" for line in
                              (f"{STAMP} LOG:  " + LOGGED.replace("\n", "\n\t")).split("\n")),
    "klog": "\n".join(f"I0304 05:06:07.123456       1 main.go:12] {line}" for line in LINES),
    "a test of NixOS": "\n".join(f"machine # [   12.345678] psql[812]: {line}" for line in LINES),
    "numbers": "\n".join(f"{n:6d}\t{line}" for n, line in enumerate(LINES, 1)),
    "a CI's log": "\n".join(f"[05:06:07] :\t [Step 1/2] {line}" for line in psql(LINES).split("\n")),
    "a list of Python": repr(LINES),
    "a string of Python": f"stdout: {PLAN!r}",
    "a string in JSON": json.dumps({"cmd": "psql", "stdout": PLAN}, indent=2),
    "Amazon's log": json.dumps({"events": [{"timestamp": 1, "message": line} for line in LINES]}),
    "a log of XML, the plan of JSON": f"{STAMP} LOG:  duration: 24.6 ms  plan:\n\t" + "\n\t".join(AS_XML.split("\n")),
    "syslog": "\n".join(f"Mar  4 05:06:07 host postgres[4711]: [5-{n}] {line}" for n, line in enumerate(
        (f"{STAMP} LOG:  " + LOGGED.replace("\n", "\n#011")).split("\n"), 1)),
    "JSON": JSON,
    "JSON of psql": psql(JSON.split("\n")),
    "JSON in unicode": psql(JSON.split("\n"), rule="─", mark="↵"),
    "JSON, border 2": psql(JSON.split("\n"), border=2),
    "JSON, unaligned": f"QUERY PLAN\n{JSON}\n(1 row)\nTime: 3 ms\n",
    "JSON with a prompt": PROMPT + psql(JSON.split("\n")),
    "JSON in a fence": f"```json\n{JSON}\n```",
    "JSON of CSV": as_csv(["QUERY PLAN"], [JSON]),
    "JSON in quotes": "\n".join('"' + line.replace('"', '""') + '"' for line in JSON.split("\n")),
    "JSON of a log": f"{STAMP} LOG:  duration: 5.123 ms  plan:\n" + textwrap.indent(
        json.dumps({"Query Text": "select 1", **DOCUMENT[0]}, indent=2), "\t"),
    "JSON in a mail": textwrap.indent(JSON, "> "),
    "JSON on one line": json.dumps(DOCUMENT),
    "rows as JSON": json.dumps([{"QUERY PLAN": line} for line in LINES], indent=2),
    "lists as JSON": json.dumps([[line] for line in LINES]),
    "strings as JSON": json.dumps(LINES),
    "a longer fence": f"~~~~\n{PLAN}\n~~~~\n",
    "a comment of C": f"/*\n{PLAN}\n*/\n",
    "a shell's quotes": "echo '" + PLAN.replace("'", "'\\''") + "'\n",
    "a comment with stars": "/*\n" + "\n".join(f" * {line}" for line in LINES) + "\n */\n",
    "rows of a client, the plan of JSON": json.dumps([{"QUERY PLAN": DOCUMENT}]),
    "a first node of JSON, of a log": json.dumps({"rows": [DOCUMENT[0]["Plan"]]}),
    "the JSON of Python": repr([(DOCUMENT,)]),
    "rows of Python": repr([(line,) for line in LINES]),
    "rows of JavaScript": "[\n" + "".join(f"  {{ 'QUERY PLAN': {line!r} }},\n" for line in LINES) + "]",
    "JSON, expanded CSV": 'QUERY PLAN,"' + JSON.replace('"', '""') + '"\n',
    "HTML in one line": "<table>" + "".join(f"<tr><td>{html.escape(line).replace(' ', '&nbsp;')}</td></tr>" for line in LINES),
    "HTML, expanded": "<table>" + "".join(f'<tr><td colspan="2">Record {n}</td></tr>\n    <tr><th>QUERY PLAN</th>\n'
                                          f"    <td>{html.escape(line)}</td></tr>\n" for n, line in enumerate(LINES, 1)) + "</table>",
    "postgres.ai": "\n".join(LINES[:-2]) + "\n\nTime: 25.339 ms\n  - planning: 0.739 ms\n  - execution: 24.600 ms\n"
    "    - I/O read: 0.000 ms\n    - I/O write: N/A\n\nShared buffers:\n  - hits: 5 (~40.00 KiB) from the buffer pool\n  - writes: 0\n",
    "a chat's marks": f"```{PLAN}```",
    "an issue": f"### Query 1\n\n```sql\nSELECT 1;\n```\nIts plan:\n```\n{PLAN}\n```\n",
    "the source of a mail": PLAN.replace("=", "=3D"),
    "dashes for arrows": PLAN.replace("'a ->", "'a --").replace("->", "\u2013>").replace("..", "\u2026"),
    "answers of psql": f"SET\nCREATE INDEX\nTiming is on.\n{PLAN}\n(18개 행)\n\n작업시간: 78.500 ms\nROLLBACK\n",
    "a log that goes on": f"{STAMP} [4711] LOG:  " + LOGGED.replace("\n", "\n\t")
                           + f"\n{STAMP} [4711] ANWEISUNG:  SELECT 1\n\tFROM line\n",
    "a chat's arrows": PLAN.replace("'a -> (b'", "'a -- (b'").replace("->", "\u2192"),
    "a client in forms": "\n".join(f"{'*' * 27}[ {n}. row ]{'*' * 27}\nQUERY PLAN | {line}" for n, line in enumerate(LINES, 1)),
    "rows of Python, printed": "\n".join(repr((line,)) for line in LINES),
    "a result of JavaScript": "Result {\n  command: 'EXPLAIN',\n  rows: [\n" + ",\n".join(
        f"    {{ 'QUERY PLAN': {line!r} }}" for line in LINES) + "\n  ],\n  fields: [Array]\n}",
    "rows of Ruby": "[" + ", ".join(f'{{"QUERY PLAN"=>{json.dumps(line)}}}' for line in LINES) + "]",
    "rows of PHP": "Array\n(\n" + "".join(
        f"    [{n}] => Array\n        (\n            [QUERY PLAN] => {line}\n        )\n\n"
        for n, line in enumerate(LINES)) + ")\n",
    "a list of PHP": "Array\n(\n" + "".join(f"    [{n}] => {line}\n" for n, line in enumerate(LINES)) + ")\n",
    "a dump of PHP": f"array({len(LINES)}) {{\n" + "".join(
        f'  [{n}]=>\n  string({len(line)}) "{line}"\n' for n, line in enumerate(LINES)) + "}\n",
    "a dump of Perl": "$VAR1 = [\n" + ",\n".join(
        "          '" + line.replace("'", "\\'") + "'" for line in LINES) + "\n        ];\n",
    "a slice of Go": "[]string{" + ", ".join(json.dumps(line) for line in LINES) + "}",
    "a list of Rust": "[src/main.rs:12] rows = [\n" + "".join(f"    {json.dumps(line)},\n" for line in LINES) + "]",
    "a test of Go": f"    explain_test.go:42: {LINES[0]}\n" + textwrap.indent("\n".join(LINES[1:]), "        "),
    "LaTeX": f"\\begin{{lstlisting}}[language=SQL]\n{PLAN}\n\\end{{lstlisting}}\n",
    "a forum's marks": f"[code=sql]{PLAN}[/code]",
    "a quoted ticket": f"{{quote}}\n{PLAN}\n{{quote}}",
    "TOML": f'plan = """\n{PLAN}\n"""\n',
    "the source of a page": PLAN.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_plan_is_read_whole_in_each_layout(layout):
    plan = read(LAYOUTS[layout])
    nodes = plan.nodes()
    assert [each.kind for each in nodes] == KINDS
    assert [depth for depth, _node in plan.root.walk()] == [0, 1, 2, 3, 3, 4]
    assert all(each.rows is not None and each.total_ms is not None for each in nodes)
    if "log" not in layout or "JSON" not in layout:
        assert plan.execution_ms is not None
    assert not plan.not_understood
    if "JSON" not in layout:
        assert [nodes[3].on, nodes[5].on] == ["line l", "book b"]
        assert (
            nodes[5].detail("Filter").replace("--", "->") == "(name <> 'a -> (b'::text)"
        )
        settings = "Settings: max_parallel_workers_per_gather = '0', work_mem = '5MB'"
        assert {settings, "Planning: Buffers: shared hit=129"} <= set(plan.footer)
        assert nodes[0].details == (
            ("Sort Key", "(count(*))"),
            ("Sort Method", "quicksort  Memory: 25kB"),
        )


def test_a_plan_without_costs_has_its_first_node():
    text = "HashAggregate\n  Group Key: g\n  ->  Nested Loop Left Join\n        ->  Seq Scan on a\n        ->  Seq Scan on b"
    plan = read("explain (costs off)\nselect g from a;\n" + text)
    assert [each.name for each in plan.nodes()] == [
        "HashAggregate",
        "Nested Loop Left Join",
        "Seq Scan on a",
        "Seq Scan on b",
    ]
    assert read("Index Only Scan Backward using i on t").root.index == "i"


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        (PLAN, False),
        (
            "\n".join(line for line in LINES if not line.startswith("Execution Time")),
            True,
        ),
        ("Seq Scan on t  (cost=0.00..1.00 rows=1 width=4)", False),
        (LOGGED, False),
        (JSON, False),
    ],
)
def test_a_plan_that_ends_after_whole_nodes_says_that_it_may_be_cut(text, may_be):
    assert read(text).may_be_cut is may_be


YAML = [
    "- Plan: ",
    '    Node Type: "Seq Scan"',
    "    Startup Cost: 0.0",
    "    Total Cost: 1.0",
    "  Execution Time: 0.5",
]
NAMES = ["QUERY PLAN", *[" " * 10] * 4]


@pytest.mark.parametrize(
    "lines",
    [
        [f"│ {name} │ {line:40}↵│" for name, line in zip(NAMES, YAML, strict=True)],
        [
            f"{name} {':|'[name != ' ' * 10]} {line}"
            for name, line in zip(NAMES, YAML, strict=True)
        ],
        [
            "* Record 1",
            *(f"{name} {line:40}+" for name, line in zip(NAMES, YAML, strict=True)),
        ],
        ["QUERY PLAN|" + YAML[0], *YAML[1:]],
        [
            "<table>",
            f"    <td>{YAML[0]}<br />",
            *(f"{line}<br />" for line in YAML[1:]),
            "</td></table>",
        ],
    ],
)
def test_a_plan_of_yaml_keeps_its_columns_in_frames_of_psql(lines):
    plan = read("\n".join(lines))

    assert (plan.root.kind, plan.root.total_cost, plan.execution_ms) == (
        "Seq Scan",
        1.0,
        0.5,
    )


@pytest.mark.parametrize(
    ("product", "text"),
    [
        (
            "MySQL",
            "-> Filter: (x < 5)  (cost=5.25 rows=2)\n    -> Table scan on o  (cost=50.2 rows=20)",
        ),
        (
            "CockroachDB",
            "  distribution: full\n  vectorized: true\n\n  • scan\n    table: t@t_pkey",
        ),
        ("Oracle", "Plan hash value: 3956160932\n\n---\n| Id | Operation |\n---"),
        ("SQLite", "QUERY PLAN\n|--SCAN t1\n`--SEARCH t2 USING INDEX i"),
        (
            "TiDB",
            "+----+----+\n| id | estRows |\n+----+----+\n| TableReader_5 | 10000.00 |",
        ),
        (
            "LaTeX",
            f"\\begin{{longtable}}{{l}}\n\\raggedright{{{PLAN}}} \\tabularnewline",
        ),
        ("troff", f".LP\n.TS\ncenter;\nl.\n{PLAN}.TE"),
        (
            "AsciiDoc",
            f'[options="header",cols="<l"]\n|====\n^l|QUERY PLAN\n|{PLAN}|====',
        ),
    ],
)
def test_a_plan_of_another_product_or_form_is_named(product, text):
    with pytest.raises(PlanUnreadableError, match=product):
        read(text)


@pytest.mark.parametrize(
    ("whole", "cut"),
    [
        ("12.596..12.599", "12,596..12,599"),
        ("rows=10 width", "rows=1,000 width"),
        ("loops=1)\n  Sort Key", "loops=1\n  Sort Key"),
        ("24.600 ms", "24.600"),
        ("(actual time=12.596", "(actua. time=12.596"),
        ("book b", "boo |k b"),
    ],
)
def test_figures_that_cannot_be_read_are_named(whole, cut):
    assert read(PLAN.replace(whole, cut)).not_understood


def test_members_beside_the_plan_are_kept():
    assert read(json.dumps([{**DOCUMENT[0], "Storage Read Requests": 4}])).footer == (
        "Storage Read Requests: 4",
    )


def test_lines_that_are_no_part_of_a_plan_are_named_and_the_plan_is_shown():
    text = PLAN.replace(
        "  Sort Key: (count(*))", "  Sort Key: (count(*))\n  what is this\n  and: this?"
    )
    plan = read("I have a question.\n" + text)
    assert plan.not_understood == (
        (1, "I have a question."),
        (4, "what is this"),
        (5, "and: this?"),
    )
    assert [each.kind for each in plan.nodes()] == KINDS


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{PLAN}\n{PLAN}", "second plan begins in line 17"),
        (f"{PLAN}\n\n{PLAN}", "second plan begins in line 18"),
        (JSON + JSON, "More than one plan"),
        (json.dumps(DOCUMENT * 2), "More than one plan"),
        (f"LOG:  {LOGGED}\nLOG:  {LOGGED}", "More than one plan"),
        ("\n".join(LINES[:8]), "cut off: Hash Join has 1 of 2"),
        ("\n".join(LINES[:5]), "cut off: HashAggregate has 0 of 1"),
        (JSON[:400], "cannot be read"),
        ('- Plan: \n    Node Type: "Sort"\n  nothing', "YAML"),
        ("<explain><Query><Plan>", "XML"),
        (
            "  ->  Hash  (cost=1.00..2.00 rows=1 width=1)\n->  Seq Scan on a",
            "left of the first",
        ),
        (
            "  ->  Sort  (cost=1.00..2.00 rows=1 width=1)\n InitPlan 1\n  Buffers: x",
            "right of",
        ),
    ],
)
def test_what_is_no_whole_plan_is_refused_with_the_reason(text, why):
    with pytest.raises(PlanUnreadableError, match=why):
        read(text)


@pytest.mark.parametrize(
    "unit",
    [
        "(cost=1..",
        "> ",
        "| ",
        '"',
        "'",
        " ->  Sort\n",
        "CTE a\n",
        "<td>",
        "duration: 1.0 ms  plan:",
        "- ",
        "- a:\n",
        "Worker 0: ",
        "+\n",
        ".\n",
    ],
)
def test_a_hostile_text_is_answered_soon(unit):
    text = "Sort  (cost=1.0..2.0 rows=1 width=4)\n" + unit * (100_000 // len(unit))

    def answer():
        with suppress(PlanUnreadableError):
            read(text)

    assert len(text) < MOST_CHARACTERS
    assert min_of(answer, 2) < 2
