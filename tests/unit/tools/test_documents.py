"""JSON out of text: what is found, and what is left."""

import pytest

from runs.tools.documents import document_of, documents_in, number


def test_documents_are_found_among_other_lines():
    found = documents_in('fio: warning\n{"a": 1}\nRESULT\n[\n "x"\n]\nend')

    assert found.found == ({"a": 1}, ["x"])
    assert found.other_text == "fio: warning\n\nRESULT\n\nend"


def test_a_document_that_is_not_whole_stays_text():
    assert documents_in('{"a": 1').found == ()
    assert documents_in('{"a": 1').other_text == '{"a": 1'


def test_after_many_failures_no_more_are_looked_for():
    assert documents_in("[x\n" * 50 + "{}\n").found == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        ("1.5", 1.5),
        (" 2 ", 2.0),
        (True, None),
        (None, None),
        ("nan", None),
        ("inf", None),
        (10**400, None),
        ([], None),
        ("12%", None),
    ],
)
def test_a_number_is_finite_or_none(value, expected):
    assert number(value) == expected


def test_a_line_is_a_document_only_as_a_whole():
    assert document_of('{"a": NaN}') == {"a": None}
    assert document_of("{} x") is None
