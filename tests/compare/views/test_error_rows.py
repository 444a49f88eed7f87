"""The sentence on a comparison names the row of the error table that applies to it."""

import re
from pathlib import Path

import pytest

from runs.compare.selectors.describe import verdict_words
from tests.history_points import commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db

DOCS = Path(__file__).parents[3] / "docs" / "statistics.md"


def asked(client, base, head):
    query = {"campaign": "nightly", "base": base, "head": f"revision:{sha(head)}"}
    found = client.get("/api/v1/compare/", query).json()["error_row"]
    comment = client.get("/api/v1/compare/", query | {"format": "md"}).content.decode()
    return found, comment


def test_comment_answer_and_page_name_the_row_of_jobs(client):
    store(history([1000.0] * 12, noise=0.01))
    store(repeats(commit(20), tps=[1000.0, 1010.0, 990.0], job="pr"))

    found, comment = asked(client, "history:main", 20)

    assert (found["table"], found["rows"], found["n"]) == ("jobs", 1, 3)
    rate = f"at most {100 * found['rate']:.1f} %"
    assert rate in comment
    # A page compares with one commit, of one job.
    pair = f"s=nightly~revision%3D{sha(11)}&s=nightly~revision%3D{sha(20)}"
    page = client.get(f"/compare/?{pair}").content.decode()
    assert "of comparisons of unchanged code with 1 job get a wrong verdict" in page


def test_sides_that_scatter_unlike_have_their_own_row(client):
    levels = [{"clients": each} for each in range(8)]
    for each in levels:
        quiet = [1000.0, 1001.0, 999.0, 1000.5]
        store(repeats(commit(1), tps=quiet, levels=each, job="one"))
        noisy = [1000.0, 1080.0, 930.0, 1010.0]
        store(repeats(commit(2), tps=noisy, levels=each, job="one"))

    found, _comment = asked(client, f"revision:{sha(1)}", 2)

    assert (found["table"], found["rows"], found["n"]) == ("unlike", 8, 3)


def test_the_rates_are_those_of_the_tables_in_the_docs():
    text = DOCS.read_text()
    printed = {float(each) for each in re.findall(r"(\d+\.\d)%", text)}
    listed = [row for rows in verdict_words._rates().values() for row in rows]

    assert {*verdict_words.TABLES} == {*verdict_words._rates()}
    assert [row for row in listed if round(100 * row["rate"], 1) not in printed] == []
