"""Words of modules without Django: a marked text is translated where it is shown, a quote never."""

from runs.execution.errors import TargetProblem
from runs.wording import gettext_noop, put

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
