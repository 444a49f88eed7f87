"""What recurses over somebody's text knows its depth first."""

import ast
import json

import pytest

from runs import foreign_json
from runs.foreign_json import MOST_DEPTH, TooDeepError
from runs.query_plans import reading
from runs.query_plans.node import PlanUnreadableError
from tests import patterns
from tests.patterns import ROOT

# Parsers that recurse, by module.
PARSERS = {
    "ast",
    "expat",
    "json",
    "lxml",
    "marshal",
    "pickle",
    "tomllib",
    "xml",
    "yaml",
}
READS = {
    "decode",
    "literal_eval",
    "load",
    "loads",
    "parse",
    "raw_decode",
    "get_single_node",
}
# What BenchLab itself has written, or reviewed; `check_depth` goes before the decoder of output.
OWN = {
    "benchlab/cache.py",
    # It refuses what is too deep by itself: it is a program of its own as well.
    "runs/export_reader.py",
    # Frames between BenchLab and a process of its own; what is too deep ends that process alone.
    "runs/reading/child.py",
    "runs/reading/process.py",
    "benchlab/embedded/state.py",
    "benchlab/lab/releases.py",
    "benchlab/loader.py",
    "benchlab/settings.py",
    "runs/shared/api/examples.py",
    "runs/foreign_json.py",
    # What `sealed` has encrypted with a key of ours.
    "runs/statements/content.py",
    "runs/published/fields.py",
    "runs/compare/selectors/address/candidates.py",
    "runs/compare/selectors/load/comparability.py",
    "runs/compare/selectors/describe/verdict_words.py",
    "runs/compare/selectors/judge/gate_answers.py",
    "runs/seals/selectors/schema.py",
    "runs/seals/selectors/verification.py",
    "runs/seals/services/seals.py",
    "runs/archive/services/comparison.py",
    "runs/operations/services/backup_files.py",
    "runs/seals/services/seal_keys.py",
    "runs/servers/services/server_checks.py",
    # Answers of the instance that its user names, in a program of its own; it refuses what is too
    # deep or too long by itself.
    "runs/pair/reads.py",
    # What processes of ours count in Redis.
    "runs/shared/signs.py",
    "runs/tools/output.py",
}


def nested(levels, begin="[", end="]"):
    return begin * levels + end * levels


def test_json_may_have_as_many_levels_as_something_real_and_no_more():
    assert json.dumps(foreign_json.loads(nested(MOST_DEPTH))) == nested(MOST_DEPTH)
    text = json.dumps(
        {"out": nested(10_000), "quoted": '\\"[' * 1000, "rows": [[1], [2]] * 500}
    )
    assert foreign_json.loads(text) == json.loads(text)
    for hostile in (
        nested(MOST_DEPTH + 1),
        "[" * 40_000,
        '[{"a":' * 40_000,
        '["\\"]",' * 40_000,
        # What strings hide, and what only seems to be in one.
        '{"a": "}\\\\"' + ', "b": [' * 300,
        '["\\\\", ' + "[" * 300 + "]" * 300 + ', "\\\\"]',
    ):
        with pytest.raises(TooDeepError):
            foreign_json.loads(hostile)


def test_a_large_flat_document_is_not_read_bracket_by_bracket(monkeypatch):
    def refuse(*_arguments):
        raise AssertionError

    monkeypatch.setattr(foreign_json, "check_depth", refuse)
    rows = [{"name": 'a "quoted" ]', "path": "C:\\", "figures": [1, 2]}] * 5000
    assert foreign_json.loads(json.dumps(rows)) == rows


@pytest.mark.parametrize("text", ["", "]", '"', '"a', '{"a', "nonsense [", "[1"])
def test_what_is_no_json_is_an_error_of_the_parser(text):
    with pytest.raises(json.JSONDecodeError):
        foreign_json.loads(text)


def test_the_document_at_a_place_is_looked_at_and_not_what_comes_after():
    foreign_json.check_depth("[[ {} " + "[" * 300, 3)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(
            f"{' ' * depth}->  Sort  (cost=1.0..2.0 rows=1 width=4)"
            for depth in range(999)
        ),
        '[{"Plan": ' + '{"Node Type": "Sort", "Plans": [' * 3000 + "]}" * 3000 + "}]",
    ],
)
def test_a_plan_with_too_many_levels_is_refused(text):
    with pytest.raises(PlanUnreadableError, match="levels"):
        reading.read(text)


def test_nothing_else_parses_somebodys_text():
    """A new parser says here whose texts it reads, or goes by `foreign_json`."""
    found = set()
    for package in patterns.PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if any(map(_parses, ast.walk(tree))):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == OWN


def _parses(node):
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, of = node.func.attr, node.func.value
    is_decoder = name in {"raw_decode", "get_single_node"}
    return is_decoder or (
        name in READS and isinstance(of, ast.Name) and of.id in PARSERS
    )
