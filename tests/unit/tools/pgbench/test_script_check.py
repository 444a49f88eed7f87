"""What is wrong with a script is found before it is run."""

import pytest

from runs.scenarios.long_run_stability import SCRIPTS
from runs.scenarios.pgbench_load import BUILT_IN
from runs.tools.pgbench.script_check import GivenScript, check


def codes(text, variables=None, **options):
    found = check([GivenScript("one", text)], variables or {}, **options)
    return [(each.line, each.code) for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1;", []),
        ("\\set a random(1, :scale)\nSELECT :a, ':missing', now()::date;", []),
        ("SELECT :a;", [(1, "variable_missing")]),
        ("\\set a :a + 1\nSELECT 1;", [(1, "variable_missing")]),
        ("\\set a\nSELECT 1;", [(1, "bad_set")]),
        ("\\set a random(1, 2\nSELECT 1;", [(1, "brackets")]),
        ("\\sett a 1\nSELECT 1;", [(1, "unknown_command")]),
        ("\\setrandom a 1 2\nSELECT 1;", [(1, "setrandom")]),
        ("\\sleep a\nSELECT 1;", [(1, "bad_sleep")]),
        ("\\sleep 10 ms\nSELECT 1;", []),
        ("\\if 1\nSELECT 1;", [(1, "condition_open")]),
        ("SELECT 1;\n\\endif", [(2, "condition_without_if")]),
        ("\\if\nSELECT 1;\n\\endif", [(1, "no_condition")]),
        ("\\set a 1\n-- nothing\n", [(0, "no_sql")]),
        ("SELECT 'a;", [(0, "quote_open")]),
        ("DO $a$ BEGIN PERFORM 'x'; END $a$;", []),
        ("SELECT 1 AS b \\gset\nSELECT :b;", []),
        ("\\shell rm x\nSELECT 1;", [(1, "shell")]),
        ("SELECT 1; \\shell rm x", [(1, "shell")]),
        ("SELECT 1;\nSELECT 2; \\ \\\n SetShell a rm x", [(2, "shell")]),
        ("SELECT 1; -- a\r\\shell rm x", [(1, "shell")]),
    ],
)
def test_each_fault_is_told_with_its_line(text, expected):
    assert codes(text) == expected


def test_an_administrator_may_allow_programs_and_variables_may_be_given():
    assert codes("\\setshell a echo 1\nSELECT :a, :b;", {"b": "2"}, allows_shell=True) == []


def test_weights_names_and_variables_are_looked_at_together():
    scripts = [GivenScript("a", "SELECT 1;", 0), GivenScript("a", "SELECT 1;", 2)]
    found = check(scripts, {"scale": "1", "2b": "1"})
    assert [each.code for each in found] == [
        "name_twice", "bad_variable", "bad_variable", "bad_weight",
    ]  # fmt: skip
    assert [each.code for each in check([], {})] == ["no_script"]


def test_nothing_is_wrong_with_our_own_scripts():
    assert [codes(text) for text in BUILT_IN.values()] == [[]] * len(BUILT_IN)
    assert [codes(each.text, {"warehouses": "2"}) for each in SCRIPTS] == [[]] * len(SCRIPTS)
