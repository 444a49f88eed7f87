"""Answers as JSON: what orjson writes reads as what REST framework's own renderer writes."""

import datetime
import decimal
import json
import uuid
from typing import Any

import numpy as np
import pytest
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st
from rest_framework import renderers

from runs.models import Run
from runs.shared.api.rendering import JSONRenderer

_OTHERS = renderers.JSONRenderer()
_PLAIN = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()
_VALUES = st.recursive(
    _PLAIN | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner)
    ),
)


@given(_VALUES)
def test_any_answer_reads_as_by_the_frameworks_renderer(value: Any) -> None:
    assert json.loads(JSONRenderer().render(value) or b"null") == json.loads(
        _OTHERS.render(value) or b"null"
    )


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 11, 24, 15, 0, 0, 123456, tzinfo=datetime.UTC),
        datetime.date(2026, 11, 24),
        datetime.timedelta(seconds=1.5),
        decimal.Decimal("0.10"),
        uuid.UUID(int=7),
        gettext_lazy("faster"),
        Run.State.FINISHED,
        np.float64(0.25),
        (1, 2),
        {None: 1, 5: 2, True: 3},
        "速い \u2028 \u2029 \x00 / </script>",
        0.1 + 0.2,
        2**62,
        2**70,
    ],
    ids=repr,
)
def test_each_kind_is_written_alike(value: Any) -> None:
    assert JSONRenderer().render({"value": value}) == _OTHERS.render({"value": value})


def test_asked_for_by_its_media_type_it_is_indented() -> None:
    text = JSONRenderer().render({"a": [1]}, "application/json; indent=4", {})
    assert text == b'{\n    "a": [\n        1\n    ]\n}'


def test_what_is_no_number_has_no_value() -> None:
    assert JSONRenderer().render({"value": float("nan")}) == b'{"value":null}'


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="not"):
        JSONRenderer().render({"value": object()})
