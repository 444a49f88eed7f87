"""The sentence of a comparison: who, by how much, in how many conditions, how surely."""

import pytest
from django.utils.translation import override

from runs.analysis.inference import Inference
from runs.compare.selectors.describe.summary import summary


def row(verdict, low=None, high=None, **more):
    ratio = None if low is None else (low * (high or low)) ** 0.5
    return Inference(verdict, ratio=ratio, low=low, high=high, **more)


FASTER = [
    row("faster", 1.08, 1.12),
    row("faster", 1.10, 1.14),
    row("faster", 1.09, 1.13),
]
PRINTED = [
    Inference("too_few_runs", ratio=ratio, reasons=("spread_unknown",))
    for ratio in (0.98, 0.944)
]
CASES = [
    ([], None, ""),
    (FASTER[:1], None, "18 is 8.0 to 12 % faster than 16."),
    (FASTER, None, "18 is 8.0 to 14 % faster than 16 in all 3 conditions."),
    (
        FASTER,
        row("faster", 1.09, 1.11),
        "18 is 9.0 to 11 % faster than 16 on average, in all 3 conditions.",
    ),
    (
        [*FASTER[:2], row("undecided", 0.97, 1.05)],
        None,
        "18 is 8.0 to 14 % faster than 16 in 2 of 3 conditions, undecided in 1.",
    ),
    (
        [FASTER[0], row("slower", 0.9, 0.95), row("same", 0.99, 1.01)],
        None,
        (
            "18 against 16: 5.0 to 10 % slower in 1 of 3 conditions, 8.0 to 12 % faster in 1 of 3 "
            "conditions, the same in 1."
        ),
    ),
    ([row("same", 0.99, 1.02)], None, "18 and 16 are the same, within 2.0 %."),
    (
        [row("same", 0.99, 1.02)] * 2,
        None,
        "18 and 16 are the same in both conditions, within 2.0 %.",
    ),
    (
        [row("undecided", 0.95, 1.05)] * 2,
        row("undecided", 0.97, 1.04),
        (
            "Undecided whether 18 differs from 16: between 3.0 % less and 4.0 % more on average of "
            "2 conditions."
        ),
    ),
    (
        [row("undecided", 0.9, 1.05)] * 2,
        row("slower", 0.92, 0.96),
        (
            "18 against 16: 4.0 to 8.0 % slower on average of 2 conditions; no single condition is "
            "sure."
        ),
    ),
    (
        [row("undecided", 0.95, 1.05), row("too_few_runs")],
        None,
        "Undecided whether 18 differs from 16: undecided in 1, too few runs in 1 of 2 conditions.",
    ),
    ([row("too_few_runs")] * 3, None, "18 and 16 have too few runs for a verdict."),
    (
        [row("not_comparable", reasons=("hardware_differs",))],
        None,
        "18 cannot be compared with 16: the hardware differs.",
    ),
    (
        [row("undecided", reasons=("machine_taken",))],
        None,
        (
            "18 cannot be compared with 16: the machine was not free: most runs of a side are "
            "invalid; keep others off it, and measure again."
        ),
    ),
    # Twice as fast is a factor, and more of what is better when less is a percentage of more.
    ([row("faster", 2.1, 3.0)], None, "18 against 16: 2.1 to 3 times."),
    ([row("slower", 1.05, 1.1)], None, "18 against 16: 5.0 to 10 % more."),
    (
        PRINTED,
        None,
        (
            "As printed, 18 is 2.0 to 5.6 % slower than 16 in 2 conditions; no spread is printed, "
            "so it is not tested."
        ),
    ),
    (
        PRINTED[:1],
        None,
        "As printed, 18 is 2.0 % slower than 16; no spread is printed, so it is not tested.",
    ),
]


LOST = row("not_comparable", reasons=("not_measured",))


@pytest.mark.parametrize(
    ("rows", "asked", "text"),
    [
        (
            FASTER[:2],
            3,
            (
                "18 is 8.0 to 14 % faster than 16 in 2 of 3 conditions. "
                "No valid runs of both sides in 1 of 3 conditions."
            ),
        ),
        (
            [*FASTER[:2], LOST],
            0,
            (
                "18 is 8.0 to 14 % faster than 16 in 2 of 3 conditions. "
                "No valid runs of both sides in 1 of 3 conditions."
            ),
        ),
        (
            [row("same", 0.99, 1.02)],
            2,
            (
                "18 and 16 are the same in 1 of 2 conditions, within 2.0 %. "
                "No valid runs of both sides in 1 of 2 conditions."
            ),
        ),
        ([LOST], 0, "18 cannot be compared with 16: a side was not measured."),
    ],
)
def test_conditions_without_a_valid_run_are_counted_too(rows, asked, text):
    assert summary("18", "16", rows, asked=asked) == text


@pytest.mark.parametrize(("rows", "together", "told"), CASES)
def test_a_sentence_says_who_by_how_much_where_and_how_surely(rows, together, told):
    assert summary("18", "16", rows, together=together) == told


def test_a_latency_is_printed_as_more_or_less():
    told = summary("18", "16", PRINTED, direction="lower")
    assert told.startswith(
        "As printed, 18 against 16: 2.0 to 5.6 % less in 2 conditions"
    )


@pytest.mark.parametrize(("rows", "together", "told"), CASES[1:])
def test_the_sentence_is_japanese_too(rows, together, told):
    with override("ja"):
        said = summary("18", "16", rows, together=together)
    assert said.endswith("。")
    assert not any(word in said for word in ("is", "faster", "than", "conditions"))


def test_what_is_less_than_a_tenth_has_no_percentage():
    printed = Inference("too_few_runs", ratio=0.04, reasons=("spread_unknown",))
    assert "0.04 times" in summary("18", "16", [printed])
