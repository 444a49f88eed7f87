"""pgbench itself reads each script, and decides as the check does.

It reads scripts before it connects, so no server is needed.
"""

# ruff: noqa: E501 - scripts are wide.
import re
import subprocess

import pytest

from runs.tools.pgbench.script_check import check
from runs.tools.pgbench.script_tokens import tokens
from runs.tools.pgbench.scripts import GivenScript
from tests.patterns import min_of
from tests.unit.postgresql_settings.servers import installed

SERVER = next(
    each
    for each in reversed(installed())
    if each.major == "18" and (each.bindir / "pgbench").exists()
)
PGBENCH = SERVER.bindir / "pgbench"
# Scripts that the check may refuse for what pgbench sees only when they run.
AT_RUN_TIME = {"variable_missing", "quote_open", "no_sql"}
TAKEN = [
    "/* the shop's order */\nSELECT 1;",
    "/* -D a=1 :a */ SELECT 1;",
    "/* a /* b */ don't */ SELECT 1;",
    "/* \\set a */ SELECT 1;",
    "SELECT 'a\n\\set b\n' ;",
    "SELECT $$it's :x; \\set y$$;",
    "SELECT $a$ $b$ $a$;",
    "SELECT E'it\\'s' ;\n\\set x 1",
    'SELECT 1 AS "it\'s :x";',
    "\\SET id 1\nSELECT :id;",
    "\\Set id 1\nSELECT :id;",
    "\\sleep 1 MS\nSELECT 1;",
    "\\sleep 1ms\nSELECT 1;",
    "\\set s 5\n\\sleep :s us\nSELECT 1;",
    "\\sleep 1\nSELECT 1;",
    "BEGIN; \\set x 1\nSELECT :x; END;",
    "BEGIN; \\if true\nSELECT 1;\n\\endif\nEND;",
    "SELECT 1 \\set x 2\nSELECT :x;",
    "\\set größe 1\nSELECT :größe;",
    "\\set 表 2\nSELECT :表;",
    "\\set x 1 + \\\n  2\nSELECT :x;",
    "\\set x 1\r\nSELECT :x;\r\n",
    "\\set x -9223372036854775808\nSELECT :x;",
    "\\set x -1 - - 9223372036854775808\nSELECT :x;",
    "\\set x 1.5e-3 * .5\nSELECT :x;",
    "\\set x (1 + 2) * -3 % 4\nSELECT :x;",
    "\\set x case when 1 < 2 then 1 when null is null then 2 else 3 end\nSELECT :x;",
    "\\set x random(1, 10 * :scale)\nSELECT :x;",
    "\\set x not true and false or 1 is not null\nSELECT :x;",
    "\\set x 1 notnull\nSELECT :x;",
    "\\set x ~1 | 2 # 3 & 4 << 1 >> 2\nSELECT :x;",
    "\\set x greatest(1, 2, 3) <> least(1)\nSELECT :x;",
    "\\set x hash(:client_id) != permute(1, 2, 3)\nSELECT :x;",
    "\\set x pi()\nSELECT :x;",
    "\\set x RANDOM(1, 2)\nSELECT :x;",
    "\\set x random_zipfian(1, 2, 1.1) + random_gaussian(1, 9, 2.5)\nSELECT :x;",
    "SELECT 1 AS one \\gset\nSELECT :one;",
    "SELECT 1 AS one \\gset p_\nSELECT :p_one;",
    "SELECT 1 AS a \\; SELECT 2 AS b \\aset\nSELECT :a;",
    "SELECT 1 AS a; \\gset\nSELECT 1;",
    "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline",
    "\\if 1\nSELECT 1;\n\\elif 0\nSELECT 2;\n\\else\nSELECT 3;\n\\endif",
    "\\ set x 1\nSELECT :x;",
    "SELECT a[1:2], b::int FROM t;",
    "SELECT 1 -- it's :y\n;",
    "SELECT 'a' \"b\" 'c''d';",
    "SELECT 1",
    ";;SELECT 1;",
    "\\set x 1\n\n\\set y :x\nSELECT :y;",
    "select '\\';",
    "SELECT a$1 FROM t;",
    "\\set x 1\nSELECT :x$$ \\if $$;",
    "\\if 1\nSELECT 1;\n\\else\\\n\nSELECT 2;\n\\endif",
    ";\\gset\nSELECT 1;",
    "\\if :scale > 1 and not :client_id is null\nSELECT 1;\n\\endif",
    "\\set x 0 = false\nSELECT 1;",
    "/* :y */ \\gset\nSELECT 1;",
    "SELECT 1 \\gset\n/* a */\n\\gset\nSELECT 1;",
    "SELECT '{\"a\": 1}'::jsonb @> '{}' AS x;",
]
REFUSED = [
    ("\\set x 1;\nSELECT 1;", 1),
    ("SELECT 1;\n\\set x 1 -- one\nSELECT 1;", 2),
    ("\\if 1\nSELECT 1;\n\\endif -- end", 3),
    ("\\else\nSELECT 1;", 1),
    ("\\if 1\nSELECT 1;\n\\else 1\nSELECT 1;\n\\endif", 3),
    ("\\set\nSELECT 1;", 1),
    ("\\set x\nSELECT 1;", 1),
    ("SELECT 1;\n\\frob 1\n", 2),
    ("\\set x 1 +\nSELECT 1;", 1),
    ("\\set x (1\nSELECT 1;", 1),
    ("\\set x 1)\nSELECT 1;", 1),
    ("\\set x nope(1)\nSELECT 1;", 1),
    ("\\set x random(1)\nSELECT 1;", 1),
    ("\\set x pi(1)\nSELECT 1;", 1),
    ("\\set x 'a'\nSELECT 1;", 1),
    ("\\set x 1 2\nSELECT 1;", 1),
    ("\\set x y\nSELECT 1;", 1),
    ("\\set x 9223372036854775809\nSELECT 1;", 1),
    ("\\set x 9223372036854775808\nSELECT 1;", 1),
    ("\\set x 1 -9223372036854775808\nSELECT 1;", 1),
    ("\\set x - +9223372036854775808\nSELECT 1;", 1),
    ("\\set x case when 1 then 2\nSELECT 1;", 1),
    ("\\set x least()\nSELECT 1;", 1),
    ("\\sleep\nSELECT 1;", 1),
    ("\\sleep a\nSELECT 1;", 1),
    ("\\sleep 1 h\nSELECT 1;", 1),
    ("\\sleep 1 ms 2\nSELECT 1;", 1),
    ("\\sleep 1;\nSELECT 1;", 1),
    ("\\if\nSELECT 1;\n\\endif", 1),
    ("\\endif\nSELECT 1;", 1),
    ("\\if 1\nSELECT 1;", 1),
    ("\\if 1\n\\else\n\\elif 1\nSELECT 1;\n\\endif", 3),
    ("\\if 1\n\\else\n\\else\nSELECT 1;\n\\endif", 3),
    ("\\gset\nSELECT 1;", 1),
    ("SELECT 1 \\gset a b\nSELECT 1;", 1),
    ("\\startpipeline now\nSELECT 1;\n\\endpipeline", 1),
    ("\\setrandom x 1 2\nSELECT 1;", 1),
    *(
        (f"SELECT {number}E'a\\';\n\\frob\n", 2)
        for number in ("$1", "1", "1.5", "1.", "1e+5", "$1x", "1_0")
    ),
    ("-- a\n\\gset\nSELECT 1;", 2),
    ("\\set x on\nSELECT 1;", 1),
    ("\\if 1 is off\nSELECT 1;\n\\endif", 1),
    ("SELECT 1;\n\\sleep 1 us\n\\gset", 3),
    ("SELECT 1 AS a \\gset\n\\gset\nSELECT 1;", 2),
    ("SELECT 1; \\endif", 1),
    ("\\set x 1 is\nSELECT 1;", 1),
    ("\\set x random(1,,2)\nSELECT 1;", 1),
    ("\\set x permute(1)\nSELECT 1;", 1),
    ("\\set x %\nSELECT 1;", 1),
]


@pytest.fixture(scope="module")
def of_pgbench(tmp_path_factory):
    """The line that pgbench refuses in each script; None where it would go on and connect."""
    folder = tmp_path_factory.mktemp("scripts")

    def ask(text):
        (folder / "s").write_text(text, newline="", encoding="utf-8")
        argv = [PGBENCH, "-n", "-t", "1", "-h", "/nowhere", "-f", "s"]
        done = subprocess.run(
            argv,
            cwd=folder,
            capture_output=True,
            text=True,
            env={"LC_ALL": "C"},
            check=False,
        )
        if "connection to server" in done.stderr:
            return None
        found = re.search(r"\bs:(\d+): ", done.stderr)
        return int(found[1]) if found else 0

    return ask


def ours(text):
    """What the check says of the text alone."""
    return [
        each
        for each in check([GivenScript("s", text)], {})
        if each.code not in AT_RUN_TIME
    ]


def test_what_pgbench_takes_can_be_stored(of_pgbench):
    wrong = [
        (text, found, of_pgbench(text))
        for text in TAKEN
        if (found := check([GivenScript("s", text)], {}))
        or of_pgbench(text) is not None
    ]
    assert not wrong


def test_what_pgbench_refuses_is_refused_with_its_line(of_pgbench):
    wrong = []
    for text, line in REFUSED:
        found, said = ours(text), of_pgbench(text)
        # What ends in the middle is a matter of the whole script for pgbench.
        if not found or found[0].line != line or said not in {line, line + 1, 0}:
            wrong.append((text, line, found, said))
    assert not wrong


def test_beginnings_of_scripts_are_decided_as_by_pgbench(of_pgbench):
    text = "\\set a 1 + (2)\nSELECT 'x' \\gset p_\n/* /* */ */\n\\if :a\n\\else\n\\endif\n\\sleep 1 ms\n"
    wrong = []
    for end in range(1, len(text), 2):
        part = text[:end]
        if (of_pgbench(part) is None) != (not ours(part)) and part.strip() != "\\":
            wrong.append((part, ours(part), of_pgbench(part)))
    assert not wrong


# What pgbench sees when it runs: of each script the line and the fault, or none.
PIPELINES = [
    ("\\startpipeline\nSELECT 1;", (1, "pipeline_open")),
    ("SELECT 1;\n\\endpipeline", (2, "no_pipeline")),
    (
        "\\startpipeline\nSELECT 1;\n\\startpipeline\n\\endpipeline",
        (3, "pipeline_twice"),
    ),
    ("SELECT 1;\n\\syncpipeline", (2, "no_pipeline")),
    ("\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline", (2, "not_in_pipeline")),
    ("\\startpipeline\n\\endpipeline\nSELECT 1;", None),
    ("\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 1;\n\\endpipeline", None),
    ("\\if true\n\\startpipeline\n\\endif\nSELECT 1;\n\\endpipeline", None),
    ("SELECT 1 AS a \\gset\n\\startpipeline\nSELECT :a;\n\\endpipeline", None),
    ("\\startpipeline\n\\sleep 1 us\nSELECT 1;\n\\ENDPIPELINE", None),
]


def test_pipelines_are_decided_as_by_a_run(tmp_path):
    wrong = []
    with SERVER.running({}) as (folder, _started):
        for text, fault in PIPELINES:
            (tmp_path / "s").write_text(text + "\n")
            argv = [
                PGBENCH,
                "-n",
                "-t",
                "1",
                "-M",
                "extended",
                "-U",
                "x",
                "-h",
                folder,
                "-f",
                "s",
            ]
            done = subprocess.run(
                [*argv, "postgres"], cwd=tmp_path, capture_output=True, check=False
            )
            found = [
                (each.line, each.code) for each in check([GivenScript("s", text)], {})
            ]
            if found != ([fault] if fault else []) or (done.returncode == 0) != (
                not fault
            ):
                wrong.append((text, found, done.stderr))
    assert not wrong


def test_a_quote_that_is_open_is_named_with_its_line():
    for text in (
        "SELECT 1;\nSELECT 'a;",
        'SELECT 1;\nSELECT "a;',
        "SELECT 1;\nSELECT $$a;",
    ):
        found = check([GivenScript("s", text)], {})
        assert [(each.line, each.code) for each in found] == [(2, "quote_open")]


@pytest.mark.parametrize(
    "unit",
    [
        "/*",
        "*/",
        "$a$",
        "'",
        "E'\\",
        "\\set x (",
        "\\",
        "(",
        "\\if 1\n",
        "\\set x " + "(" * 200 + "\n",
        "\\gset ",
    ],
)
def test_a_hostile_script_is_answered_soon(unit):
    text = unit * (90_000 // len(unit))
    assert "".join(each.text for each in tokens(text)) == text
    assert min_of(lambda: check([GivenScript("s", text)], {}), 2) < 2
