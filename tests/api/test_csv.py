"""Rows as CSV: no text is a formula for a spreadsheet, and JSON has it as it was."""

import csv

import pytest

from runs.models import Measurement
from tests.histories import repeats, store

pytestmark = pytest.mark.django_db


def test_no_text_is_a_formula_and_json_has_it_as_it_was(client, get):
    store(repeats(campaign="nightly", levels={"clients": 8}, tps=[-5.5]))
    Measurement.objects.update(statistic="=cmd|'/C calc'!A0"[:10])

    answer = client.get("/api/v1/measurements/?format=csv")
    (row,) = csv.DictReader(b"".join(answer.streaming_content).decode().splitlines())

    assert row["statistic"].startswith("'=cmd")
    assert float(row["value"]) == -5.5
    (told,) = get("measurements/")["results"]
    assert told["statistic"].startswith("=cmd")
