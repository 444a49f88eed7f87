"""The load as a whole as scripts of pgbench: what each draws, and how often."""

import re

import pytest

from runs.scenarios.statements import whole
from runs.statements.load import Unit


def unit(number, calls, samples=(("SELECT 1",),), *, is_transaction=False):
    return Unit(number, "", 1, calls, None, is_transaction, True, samples)


def test_units_are_drawn_by_their_calls_and_their_samples_alike():
    transaction = (("SELECT a", "SELECT b"),)
    drawn = whole.scripts(
        [
            unit(1, 30, (("SELECT 'x'",), ("SELECT 'y'",))),
            unit(2, 10, transaction, is_transaction=True),
        ]
    )
    assert [script.weight for script in drawn] == [
        375_000_000,
        375_000_000,
        250_000_000,
    ]
    assert drawn[0].text == "BEGIN \\;\nSELECT 'x'\n\\;\nROLLBACK;\n"
    assert drawn[2].text == "BEGIN;\nSELECT a\n;\nSELECT b\n;\nROLLBACK;\n"


def test_of_more_units_than_scripts_the_rare_ones_share_some_at_their_calls():
    units = [unit(n, 1000 - n, ((f"SELECT {n}",),)) for n in range(1, 601)]
    drawn = whole.scripts(units)
    assert len(drawn) == whole.MOST_SCRIPTS
    total = sum(one.calls for one in units)
    chances = {}
    for script in drawn:
        bounds = [int(bound) for bound in re.findall(r"<= (\d+)", script.text)]
        numbers = re.findall(r"SELECT (\d+)", script.text)
        widths = (
            [high - low for low, high in zip([0, *bounds], bounds, strict=False)]
            if bounds
            else [script.weight]
        )
        assert sum(widths) == script.weight
        chances |= dict(zip(map(int, numbers), widths, strict=True))
    assert sorted(chances) == list(range(1, 601))
    for one in units:
        expected = one.calls / total * whole.TOTAL_WEIGHT
        assert chances[one.number] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "is_safe"),
    [
        ("SELECT a::text, b[1:2] FROM t", True),
        ("SELECT ':scales', ':1', ':day'", True),
        ("SELECT x\\", False),
        ("SELECT '\\shell rm'", False),
        ("SELECT ':scale'", False),
        ("SELECT a[1:client_id]", False),
        ("SELECT ':random_seed', ':benchlab_draw'", False),
    ],
)
def test_what_pgbench_would_read_as_its_own_is_not_safe(text, is_safe):
    assert whole.is_safe(unit(1, 1, ((text,),))) is is_safe
