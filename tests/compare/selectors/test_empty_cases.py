"""No sentence has a hole: comment, badge, page and notes where nothing is known of a field."""

import itertools
import re

import pytest
from django.utils import translation

from runs.analysis.inference import VERDICTS, Inference
from runs.compare.selectors.answers import Result
from runs.compare.selectors.describe import job_words, summary
from runs.compare.selectors.describe.verdict_words import (
    REASONS,
    size,
    size_of_all,
    worded,
)

# Of a difference that was measured, the fields that an answer may lack.
FIELDS = {
    "ratio": 0.9,
    "low": 0.85,
    "high": 0.95,
    "base_value": 1000.0,
    "head_value": 900.0,
    "p_value": 0.01,
    "base_jobs": 1,
    "head_jobs": 1,
    "more_rounds": 4,
    "more_shows": 0.07,
}
# ": ." and ", ." and "()" and two marks or blanks in a row, "%(" and None.
HOLE = re.compile(
    r":\s*\.|,\s*[.,]|\(\s*\)|\.\.|;\s*[;.]|  |%\(|None|：\s*。|、\s*[。、]|（\s*）|。。"
)


def answers():
    """Every verdict with every reason, each field in turn (and all together) not known."""
    reasons = [(), *((code,) for code in REASONS)]
    for verdict, why in itertools.product(VERDICTS, reasons):
        for missing in (
            (),
            *((name,) for name in FIELDS),
            tuple(FIELDS),
            ("low", "high"),
        ):
            known = {
                name: value for name, value in FIELDS.items() if name not in missing
            }
            yield Inference(verdict, reasons=why, **known)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_no_sentence_has_a_hole(language):
    holes = set()
    with translation.override(language):
        for inference in answers():
            result = Result(inference)
            texts = [
                summary.summary("4f1c09d", "main", [inference]),
                summary.summary("4f1c09d", "main", [inference, inference]),
                summary.summary("4f1c09d", "main", [inference] * 3, together=inference),
                job_words.judged_by([inference]),
                size(inference),
                size_of_all([inference, inference]),
                worded(inference, size(inference)),
                result.word,
                result.why,
                result.sized,
                result.word_of_print,
            ]
            if inference.base_jobs:
                texts.append(job_words.explain_undecided([inference]))
            holes |= {text for text in texts if HOLE.search(str(text))}

    assert holes == set()
