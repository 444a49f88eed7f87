"""Which uploaded texts are told apart by what they say, and by what name."""

from datetime import UTC, datetime

import pytest

from runs.execution.reporter import ArtifactData
from runs.uploads.services.question import PREFIX, add_external_ids
from runs.uploads.services.uploaded_run import GivenMeasurement, GivenRun

TELLING = [("tps", 1203.51, "tps")]


def given(figures=TELLING, files=None, status="finished", **fields):
    """A run with that output."""
    files = {"stdout": b"a", "exit_status": b"0"} if files is None else files
    return GivenRun(
        at="",
        campaign=fields.pop("campaign", "nightly"),
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        status=status,
        measurements=tuple(
            GivenMeasurement(name, value, unit=unit) for name, value, unit in figures
        ),
        files=tuple(ArtifactData(name, content) for name, content in files.items()),
        **fields,
    )


def names(*runs):
    return [run.external_id for run in add_external_ids(runs)]


@pytest.mark.parametrize(
    ("figures", "is_telling"),
    [
        (TELLING, True),
        ([("tps", 1203.5, "tps")], False),
        ([("tps", 1203.5, "tps"), ("latency", 2.0, "ms")], True),
        (
            [
                ("tps", 1203.5, "tps"),
                ("files", 1234567.0, "B"),
                ("score", 123456.0, None),
            ],
            False,
        ),
        # Zeros at either end say nothing, nor does an exponent.
        ([("tps", 120350.0, "tps")], False),
        ([("latency", 0.0012345, "ms")], False),
        ([("latency", 0.00123456, "ms")], True),
        ([("latency", 1.2e-12, "ms"), ("tps", 456.0, "tps")], False),
    ],
)
def test_a_text_with_six_measured_digits_has_a_name(figures, is_telling):
    (name,) = names(given(figures))

    assert name.startswith(PREFIX) == is_telling == bool(name)


def test_a_run_without_a_finished_text_or_with_a_name_of_its_own_gets_none():
    assert names(
        given(status="failed"), given(files={}), given(external_id="mine")
    ) == [
        "",
        "",
        "mine",
    ]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (given(files={"raw": b"a", "exit_status": b"1", "vmstat": b"b"}), True),
        (given([("tps", 1203.52, "tps")]), True),
        (given(files={"stdout": b"b"}), False),
        (given(files={"stdout": b"a", "stderr": b"b"}), False),
        (given(round=2), False),
        (given(levels={"clients": 2}), False),
    ],
)
def test_a_name_is_of_the_text_and_of_where_the_run_belongs(other, is_same):
    ours, theirs = names(given())[0], names(other)[0]

    assert (ours == theirs) == is_same


def test_each_of_one_text_in_a_request_has_a_name_by_campaign():
    first, second, elsewhere, third = names(
        *(given(campaign=each) for each in ("nightly", "nightly", "weekly", "nightly"))
    )

    assert [second, elsewhere, third] == [f"{first}:2", first, f"{first}:3"]
