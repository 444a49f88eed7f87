"""No text from a stranger keeps the web process busy: every pattern of the code is linear."""

from runs.scenarios import registry
from runs.statements import needs
from runs.tools.pgbench import command, script_check
from runs.tools.pgbench.script_tokens import line_of_command
from runs.tools.pgbench.scripts import GivenScript
from tests import patterns
from tests.patterns import Found

# Calls whose pattern is a variable, and all of its values; compiled ones are found as objects.
VARIABLE = {
    "runs/enclosed.py": ["bench {1,80}+:[0-9]{1,40}+ {1}"],  # of what lines begin with
    "runs/scenarios/definition.py": [
        form
        for scenario in registry.every()
        for factor in scenario.factors
        for name in ("further", "pattern")
        if (form := getattr(factor, name, ""))
    ],
    "runs/tools/pgbench/command.py": [
        form for form, _since in command._KNOWN.values() if form
    ],
    "runs/statements/needs.py": [
        pattern.pattern for _version, _construct, pattern in needs._CONSTRUCTS
    ],
    "runs/tools/pgbench/summary.py": [],
}


NOT_LINEAR = [r"\\[\s\\]*((?:set)?shell)", r"(\$\w*\$).*?\1"]


def test_a_pattern_in_a_function_is_found():
    found, _variable = patterns.of_source()
    places = [each.place.rpartition(":")[0] for each in found]
    assert "runs/campaigns/views/treatment_fields.py" in places
    assert "script/benchlab-upload" in places
    assert len(found) > 250
    assert len(patterns.of_addresses()) > 200
    assert len(patterns.validators()) > 3


def test_each_pattern_that_is_a_variable_is_known():
    _found, variable = patterns.of_source()
    assert set(variable) == VARIABLE.keys()
    forms = [each for values in VARIABLE.values() for each in values]
    assert len(forms) > 1
    measured = patterns.measure([Found(each, 0, "") for each in (*NOT_LINEAR, *forms)])
    slow = [each.seconds >= patterns.SECONDS for each in measured]
    # Those that are not linear are found so, by the same measure.
    assert slow == [True, True, *[False] * len(forms)]


def test_every_pattern_reads_every_hostile_text_at_once():
    measured = patterns.measure()
    measured.sort(key=lambda each: -each.seconds)
    print(*measured[:5], sep="\n")
    slow = [each for each in measured if each.seconds >= patterns.SECONDS]
    assert slow == []


def scripts():
    size = patterns.SIZE
    own = ("\\shell\n", "\\if 1\n", "\\ ", ":a ", "'$")
    yield from (
        patterns.long(unit)[:size]
        for unit in (*patterns.UNITS, *patterns.ALPHABET, *own)
    )
    yield "".join(f"\\set a{number} 1\n" for number in range(size // 13))
    yield "".join(f"${number}$ " for number in range(size // 9))


def test_a_long_script_is_checked_at_once():
    slow = {}
    most = 5 * patterns.SECONDS
    for text in scripts():
        given = [GivenScript("a", text)]
        seconds = patterns.min_of(lambda: script_check.check(given, {}), most)  # noqa: B023
        line = patterns.min_of(lambda: line_of_command(text, 10**6), most)  # noqa: B023
        if max(seconds, line) > most:
            slow[text[:20]] = (seconds, line)
    assert slow == {}


def test_a_script_that_is_too_long_is_not_searched():
    """A hundred times the length takes no longer."""
    given = [GivenScript("a", "\\" * script_check.MOST_CHARACTERS * 100)]
    assert (
        patterns.min_of(lambda: script_check.check(given, {})) < patterns.SECONDS / 10
    )
    assert [each.code for each in script_check.check(given, {})] == ["too_long"]
