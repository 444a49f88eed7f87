"""The words for sizes: a table of edge cases, in both languages."""

import pytest
from django.utils import translation

from runs.analysis.inference import Inference
from runs.selectors.compare.verdict_words import size

SIZES = [
    ("slower", 0.86, 0.958, "4.2 to 14 % slower", "4.2 ~ 14 % 遅い"),
    ("faster", 1.1101, 1.1149, "11 % faster", "11 % 速い"),
    ("slower", 1.083, 1.0832, "8.3 % more", "8.3 % 多い"),
    ("faster", 0.9, 0.95, "5.0 to 10 % less", "5.0 ~ 10 % 少ない"),
    ("slower", 0.003, 0.004, "0.003 to 0.004 times", "0.003 ~ 0.004 倍"),
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
    ("same", None, None, "none on either side", "どちらも 0"),
    ("undecided", None, None, "", ""),
]


@pytest.mark.parametrize(("verdict", "low", "high", "english", "japanese"), SIZES)
def test_each_size_is_said_in_one_way(verdict, low, high, english, japanese):
    found = Inference(verdict, low=low, high=high)

    assert size(found) == english
    with translation.override("ja"):
        assert size(found) == japanese
