import pytest

from runs.tools.pgbench import for_tool
from runs.tools.pgbench.versions import UnsupportedByToolError
from tests.unit.timing import cpu_seconds

READ = r"""\set aid_max 100000 * :scale
\set aid random(1, :aid_max)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""


@pytest.mark.parametrize("version", [90600, 100000, 160000, 190000])
def test_a_script_is_unchanged_from_9_6_on(version):
    assert for_tool(READ, version) == READ


@pytest.mark.parametrize("version", [90200, 90400, 90525])
def test_a_random_value_has_a_command_of_its_own_before_9_6(version):
    assert for_tool(READ, version) == (
        "\\set aid_max 100000 * :scale\n"
        "\\setrandom aid 1 :aid_max\n"
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    )


@pytest.mark.parametrize(
    ("modern", "old"),
    [
        (r"\set delta random(-5000, 5000)", ["\\setrandom delta -5000 5000"]),
        (r"\set  aid  RANDOM( 1 ,10 ) ", ["\\setrandom aid 1 10"]),
        (r"\set n :a+1", ["\\set n :a + 1"]),
        (r"\set n -1", ["\\set n -1"]),
        (r"\set n :a", ["\\set n :a"]),
        (r"\sleep 10 ms", ["\\sleep 10 ms"]),
        (r"\setrandom a 1 2", ["\\setrandom a 1 2"]),
        (
            r"\set aid random(1, 100000 * :scale)",
            ["\\set benchlab_aid_high 100000 * :scale", "\\setrandom aid 1 :benchlab_aid_high"],
        ),
        ("-- a comment\n\nSELECT 1;", ["SELECT 1;"]),
        ("SELECT a,\n  b\nFROM t;\nEND;", ["SELECT a, b FROM t;", "END;"]),
        ("SELECT ';--' ;", ["SELECT ';--' ;"]),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1\n\\sleep 1 s\nEND;", ["SELECT 1", "\\sleep 1 s", "END;"]),
    ],
)
def test_each_command_is_written_as_9_3_reads_it(modern, old):
    assert for_tool(modern, 90325).splitlines() == old


def test_9_5_computes_with_whole_numbers():
    script = "\\set n (:a + 1) * 2 % 7\n"

    assert for_tool(script, 90525) == script
    with pytest.raises(UnsupportedByToolError, match=r"one operation .* needs pgbench 9\.5"):
        for_tool(script, 90424)


@pytest.mark.parametrize(
    ("script", "version", "message"),
    [
        (r"\set n random_gaussian(1, 10, 2.5)", 90525, "Line 1: pgbench 9.5 cannot compute"),
        (r"\set n 1 + random(1, 10)", 90525, "cannot compute"),
        (r"\set n 0.5", 90325, "cannot compute"),
        (r"\set n :a || 1", 90325, "cannot compute"),
        (r"\set n random(1)", 90325, "a lower and an upper bound"),
        (r"\set n random(1, abs(:a))", 90325, "cannot compute"),
        ("SELECT 1; SELECT 2;", 90325, "a line is one statement"),
        ("SELECT 1 -- one\n + 2;", 90325, "no comment behind it"),
        ("SELECT 1;\n\\if :a > 1", 100000, r"Line 2: \\if needs pgbench 11 or later; .* is 10"),
        ("SELECT 1 AS a \\gset", 110000, r"\\gset needs pgbench 12"),
        (r"\startpipeline", 130000, "needs pgbench 14"),
        (r"\set n permute(:a, 10)", 130000, r"permute\(\) needs pgbench 14"),
        (r"\set n random_zipfian(1, 10, 1.1)", 100000, "needs pgbench 11"),
        ("\\set n 1 + \\\n 2", 90600, "over several lines needs pgbench 10"),
    ],
)
def test_what_a_tool_cannot_run_is_refused_with_its_line(script, version, message):
    with pytest.raises(UnsupportedByToolError, match=message):
        for_tool(script, version)


def test_a_quoted_text_is_no_command():
    script = "SELECT '\\gset';\n"

    assert for_tool(script, 100000) == script


@pytest.mark.parametrize("unit", ["1", ":a1", "+", " ", "random("])
def test_a_long_expression_takes_no_long_time(unit):
    def translate() -> None:
        with pytest.raises(UnsupportedByToolError):
            for_tool(f"\\set n {unit * 20_000}!", 90525)

    assert cpu_seconds(translate, tries=1) < 5
