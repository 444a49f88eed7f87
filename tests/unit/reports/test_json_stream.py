"""JSON that is written while it is read: just what json.dumps would have written."""

import json

import pytest

from runs.reports import json_stream

CELL = {"levels": {"clients": 1, "text": "a\nb"}, "version": "18.1"}


@pytest.mark.parametrize("head", [{"campaign": "ü", "factors": {"clients": [1, 2]}}, {}])
@pytest.mark.parametrize("rows", [[], [{"n": 1}], [{"n": 1, "of": [1.5, None]}, {"n": 2}]])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_it_is_written_as_in_one_go(head, rows, count):
    cells = (json_stream.element(CELL, summaries=iter(rows), none=[]) for _ in range(count))
    whole = head | {"cells": [CELL | {"summaries": rows, "none": []}] * count}

    written = "".join(json_stream.document(head, cells=cells))

    assert written == json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def test_lists_are_read_in_their_order_as_they_are_written():
    seen = []

    def rows(name):
        for number in range(2):
            seen.append((name, number))
            yield {"n": number}

    for _text in json_stream.element({}, first=rows("first"), second=rows("second")):
        pass

    assert seen == [("first", 0), ("first", 1), ("second", 0), ("second", 1)]
