"""Words of modules without Django: a marked text is translated where it is shown, a quote never."""

from runs.execution.errors import TargetProblem
from runs.tools.adapter import SEVERAL_RESULTS, Reading, Reason, quoted
from runs.wording import Marked, gettext_noop, is_wording, put

GERMAN = {"Step %(step)s: %(what)s.": "Schritt %(step)s: %(what)s.", "load": "Last"}


def german(text):
    return GERMAN.get(text, text)


def test_a_quoted_name_that_is_a_word_elsewhere_stays_and_a_marked_text_is_translated():
    text = gettext_noop("Step %(step)s: %(what)s.")
    problem = TargetProblem(text, step="load", what=gettext_noop("load"))
    assert problem.message == "Step load: load."
    assert put(problem.wording, german) == "Schritt load: Last."
    outer = TargetProblem("%(cause)s", cause=problem)
    assert put(outer.wording, german) == "Schritt load: Last."


def test_the_reasons_of_a_run_are_one_wording_of_bounded_length():
    lines = [Reason("x", Marked("%(line)s"), line="y" * 1000) for _ in range(1000)]
    reading = Reading(status="failed", tool_name="x", reasons=(SEVERAL_RESULTS, *lines))

    assert is_wording(reading.failure)
    assert 4000 < len(put(reading.failure)) < 6000
    assert put(reading.failure).startswith(f"{SEVERAL_RESULTS.message}; yyy")
    alone = Reading(
        status="failed", tool_name="x", reasons=(quoted("tool_error", "load\x1b[2J"),)
    )
    assert put(alone.failure, german) == "load\\x1b[2J"
