"""The words for sizes: a table of edge cases, in both languages."""

import pytest
from django.utils import translation

from runs.analysis.inference import Inference
from runs.compare.selectors.describe.verdict_words import size

SIZES = [
    ("slower", 0.86, 0.958, "4.2 to 14 % slower", "4.2 ~ 14 % 遅い"),
    ("faster", 1.1101, 1.1149, "11 % faster", "11 % 速い"),
    ("slower", 1.083, 1.0832, "8.3 % more", "8.3 % 多い"),
    ("faster", 0.9, 0.95, "5.0 to 10 % less", "5.0 ~ 10 % 少ない"),
    ("slower", 0.003, 0.004, "0.003 to 0.004 times", "0.003 ~ 0.004 倍"),
    ("slower", 0.0000147, 0.169, "1/68,000 to 0.169 times", "1/68,000 ~ 0.169 倍"),
    ("slower", 3.0, 3.0, "3 times", "3 倍"),
    (
        "undecided",
        0.98,
        1.03,
        "between 2.0 % less and 3.0 % more",
        "-2.0 % ~ +3.0 %",
    ),
    ("undecided", 0.4, 3.73, "0.4 to 3.73 times", "0.4 ~ 3.73 倍"),
    ("undecided", 0.004, 353.0, "0.004 to 353 times", "0.004 ~ 353 倍"),
    ("undecided", 0.004, 1.2, "0.004 to 1.2 times", "0.004 ~ 1.2 倍"),
    ("undecided", 0.0256, None, "0.0256 times and more", "0.0256 倍から上限なし"),
    ("slower", 90.3, None, "at least 90.3 times", "90.3 倍以上"),
    (
        "undecided",
        0.996,
        1.00003,
        "between 0.4 % less and 0.003 % more",
        "-0.4 % ~ +0.003 %",
    ),
    ("faster", 1.0001, 1.031, "0.01 to 3.1 % faster", "0.01 ~ 3.1 % 速い"),
    ("slower", 0.398, 0.504, "50 to 60 % slower", "50 ~ 60 % 遅い"),
    ("slower", 0.1, 0.1, "90 % slower", "90 % 遅い"),
    ("slower", 0.0996, 0.95, "0.0996 to 0.95 times", "0.0996 ~ 0.95 倍"),
    ("slower", 0.501, 0.9046, "9.5 to 50 % slower", "9.5 ~ 50 % 遅い"),
    ("faster", 1.999, 2.0, "2 times", "2 倍"),
    ("slower", 1.2, 123456.0, "1.2 to 123,000 times", "1.2 ~ 123,000 倍"),
    ("slower", 1.2, 2e7, "1.2 to 2e+07 times", "1.2 ~ 2e+07 倍"),
    ("slower", 1000.4, None, "at least 1,000 times", "1,000 倍以上"),
    ("same", 0.99, 1.004, "within 1.0 %", "1.0 % 以内"),
    ("same", 1.0, 1.0, "within 0.0 %", "0.0 % 以内"),
    ("different", 0.9, 0.95, "5.0 to 10 % less", "5.0 ~ 10 % 少ない"),
    ("slower", None, None, "from some to nothing", "ありから 0 へ"),
    ("same", None, None, "none on either side", "どちらも 0"),
    ("undecided", None, None, "", ""),
]


@pytest.mark.parametrize(("verdict", "low", "high", "english", "japanese"), SIZES)
def test_each_size_is_said_in_one_way(verdict, low, high, english, japanese):
    found = Inference(verdict, low=low, high=high)

    assert size(found) == english
    with translation.override("ja"):
        assert size(found) == japanese


def test_what_was_nothing_and_is_something_is_said():
    found = Inference("slower", base_value=0.0, head_value=5.0)

    assert size(found) == "from nothing to some"
    with translation.override("ja"):
        assert size(found) == "0 からありへ"
