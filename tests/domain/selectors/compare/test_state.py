"""The state of the compare page, and its address."""

import pytest
from django.http import QueryDict

from runs.selectors.compare import series_keys
from runs.selectors.compare import state as compare_state
from runs.selectors.compare.series_keys import BadSeriesKey, SeriesKey
from runs.selectors.compare.state import CompareState


@pytest.mark.parametrize(
    "key",
    [
        SeriesKey("a-campaign"),
        SeriesKey("wg1-2013-2-3", (("version", "9.3"), ("checksums", "on"))),
        SeriesKey("odd", (("a~b=c", "x~y=z&s=%2F"), ("部", "同期 1台"), ("empty", ""))),
    ],
)
def test_a_key_is_read_as_it_was_written(key):
    assert series_keys.parse(str(key)) == key


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "“” in “” is not the short name"),
        ("a b~version=1", "“a b”"),
        ("slug~version", "“version” in “slug~version” must be a factor and its level"),
        ("slug~=9.3", "“=9.3”"),
        ("slug~", "“”"),
        ("slug~clients=1~clients=2", "fixes the factor clients twice"),
        ("slug~clients=%00", "a null character"),
        ("slug\0", "a null character"),
    ],
)
def test_a_key_that_cannot_be_read_names_its_part(text, told):
    with pytest.raises(BadSeriesKey) as caught:
        series_keys.parse(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "state",
    [
        CompareState(),
        CompareState(series=(SeriesKey("a"), SeriesKey("b", (("version", "16.14"),)))),
        CompareState(
            series=(SeriesKey("a", (("label", "50 % & more~"),)),),
            x="clients",
            metric="latency_average",
            base="a~label=50%20%25%20%26%20more%7E",
            relative=True,
            log_x=True,
            log_y=True,
            facet="topology",
            matters=True,
            effect=0.5,
            ignore=("hardware", "environment"),
            at="64",
            fit="usl",
        ),
    ],
)
def test_every_state_is_in_its_address(state):
    assert compare_state.read(QueryDict(state.query)) == (state, [])


def test_a_form_says_the_same_as_a_link():
    form = QueryDict("s=a&ignore=hardware&ignore=environment&relative=on&effect=")

    state, faults = compare_state.read(form)

    assert (state.ignore, state.relative, state.effect) == (("hardware", "environment"), True, 3.0)
    assert faults == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("facet=colour", "facet=colour is not known"),
        ("fit=cubic", "fit=cubic is not known; known are amdahl, usl"),
        ("effect=much", "effect=much must be a number of percent"),
        ("effect=-1", "effect=-1"),
        ("effect=nan", "effect=nan"),
        ("ignore=weather", "ignore=weather"),
        ("s=no%20slug", "“no slug”"),
    ],
)
def test_what_cannot_be_read_is_said_and_the_rest_is_kept(query, told):
    state, faults = compare_state.read(QueryDict(f"s=kept&{query}"))

    assert told in faults[0]
    assert state == CompareState(series=(SeriesKey("kept"),))


def test_too_many_series_are_cut_and_said():
    query = "&".join(f"s=c{number}" for number in range(30))

    state, faults = compare_state.read(QueryDict(query))

    assert len(state.series) == compare_state.MOST_SERIES
    assert "30 series are too many" in faults[0]


def test_a_series_is_added_once_and_taken_away_with_its_place_as_base():
    one, two = SeriesKey("one"), SeriesKey("two")
    state = CompareState(series=(one,), base="two")

    assert state.with_series(one) == state
    assert state.with_series(two).series == (one, two)
    assert state.with_series(two).without_series(two) == CompareState(series=(one,))
