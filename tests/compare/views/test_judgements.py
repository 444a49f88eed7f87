"""Valid, doubtful, invalid, unknown: every door says the same of the same runs, and none of the
invalid ones is in a median or a verdict until somebody lets it count, with a reason."""

import re

import pytest

from runs.analysis.judged_runs import Judged
from runs.campaigns.services import repeats
from runs.compare.selectors.judge.ratios import ratios
from runs.models import Run
from runs.queue.selectors import certificate_words
from runs.queue.services import withdrawals
from tests import factories

pytestmark = pytest.mark.django_db
SIDES = "base=campaign:lab~version%3D16.14&head=campaign:lab~version%3D18.4&metric=tps"
ROUNDS = 5
# By clients, what is said of the head's runs.
SAID = {
    1: Judged(valid=5, ours=5),
    2: Judged(valid=4, doubtful=1, ours=5),
    4: Judged(valid=1, invalid=4, left_out=4, ours=5),
    8: Judged(valid=4, unknown=1, ours=5),
    16: Judged(valid=4, invalid=1, left_out=1, ours=5),
}
WORDS = {
    2: "1 doubtful",
    4: "4 invalid, left out",
    8: "1 unknown",
    16: "1 invalid, left out",
}


@pytest.fixture
def campaign():
    factors = {"version": ["16.14", "18.4"], "clients": list(SAID)}
    made = factories.campaign("lab", factors=factors, repeats=ROUNDS)
    made.runs.update(validity="valid")
    factories.finish_all(made, gain={"18.4": 1.2})
    heads = made.runs.filter(cell__version="18.4")
    for clients, said in SAID.items():
        for place, word in enumerate(("doubtful", "invalid", "unknown")):
            some = heads.filter(cell__levels__clients=clients).order_by("-repeat")
            chosen = [run.pk for run in some[: said.counts[word]]]
            Run.objects.filter(pk__in=chosen).update(validity=word if place < 2 else "")
    for run in Run.objects.filter(validity="invalid"):
        run.measurements.update(value=1e9)
        repeats.leave_out_invalid(run)
    return made


def text_of(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, address
    return re.sub(r"\s+", " ", answer.content.decode())


def test_one_function_counts_the_judgements_of_cells(campaign):
    heads = {
        cell.pk: cell.levels["clients"]
        for cell in campaign.cells.filter(version="18.4")
    }
    found = certificate_words.judge_cells(heads)
    assert {heads[cell]: judged for cell, judged in found.items()} == SAID
    assert {
        n: certificate_words.counted(each) for n, each in SAID.items() if n > 1
    } == WORDS
    assert certificate_words.mark(SAID[1]) == ""


def test_pages_reports_and_exports_say_each_word_of_the_cells(client, campaign):
    pages = {
        "campaign": text_of(client, "/campaigns/lab/"),
        "compare": text_of(client, "/compare/?s=lab"),
        "report": text_of(client, "/campaigns/lab/report/?format=html"),
        "comment": text_of(client, f"/api/v1/compare/?{SIDES}&format=md"),
    }
    for name, page in pages.items():
        for words in WORDS.values():
            assert f"⚠ {words}" in page, (name, words)
        assert "in doubt" not in page, name
    for name in ("campaign", "compare", "comment"):
        assert "the machine was not free" in pages[name], name
    table = client.get("/compare/?s=lab&format=csv").content.decode().splitlines()
    assert table[0].split(",")[6:10] == ["valid", "doubtful", "invalid", "unknown"]
    rows = [
        tuple(map(int, line.split(",")[6:10])) for line in table[1:] if "18.4" in line
    ]
    assert sorted(rows) == sorted(tuple(said.counts.values()) for said in SAID.values())


def test_the_api_says_them_of_cells_sides_and_runs(client, campaign):
    cells = client.get("/api/v1/campaigns/lab/").json()["cells"]
    heads = {
        cell["levels"]["clients"]: cell for cell in cells if cell["version"] == "18.4"
    }
    assert {n: cell["judged"] for n, cell in heads.items()} == {
        n: said.counts for n, said in SAID.items()
    }
    assert [n for n, cell in heads.items() if cell["is_machine_taken"]] == [4]
    compared = client.get(f"/api/v1/compare/?{SIDES}").json()["rows"]
    assert {row["levels"]["clients"]: row["head"]["judged"] for row in compared} == {
        n: said.counts for n, said in SAID.items()
    }
    for word in ("valid", "doubtful", "invalid", "unknown"):
        listed = client.get(
            f"/api/v1/runs/?campaign=lab&validity={word}&page_size=200"
        ).json()
        counts = sum(said.counts[word] for said in SAID.values())
        base = ROUNDS * len(SAID) if word == "valid" else 0
        assert len(listed["results"]) == counts + base, word
        assert {run["validity"] for run in listed["results"]} == {word}
        run = listed["results"][0]["id"]
        told = client.get(f"/api/v1/runs/{run}/").json()
        assert told["validity"] == told["certificate"]["validity"] == word
        assert f">{word}<" in re.sub(r"\s", "", text_of(client, f"/runs/{run}/"))
    assert client.get("/api/v1/runs/?validity=not-valid").status_code == 400


def test_files_have_the_words_of_each_run(client, campaign):
    of_runs = [run.judgement for run in campaign.runs.all()]
    listed = b"".join(
        client.get("/campaigns/lab/export.csv").streaming_content
    ).decode()
    cells = b"".join(
        client.get("/campaigns/lab/export.json").streaming_content
    ).decode()
    for word in ("valid", "doubtful", "invalid", "unknown"):
        assert listed.count(f",{word},") == of_runs.count(word)
        assert cells.count(f'"validity": "{word}"') == of_runs.count(word)


def test_invalid_runs_are_in_no_median_and_no_verdict(campaign):
    rows = {row.levels["clients"]: row for row in ratios(campaign, "tps")}
    assert rows[16].head.n == 4
    assert rows[16].head.maximum < 1e6
    assert rows[16].comparison.verdict == "faster"
    taken = rows[4].comparison
    assert (taken.verdict, taken.reasons, taken.more_rounds) == (
        "undecided",
        ("machine_taken",),
        None,
    )
    assert rows[4].together is None


def test_a_person_lets_an_invalid_run_count_with_a_reason(client, campaign):
    run = Run.objects.filter(Run.LEFT_OUT, cell__levels__clients=16).get()
    run = withdrawals.restore(
        run=run, reason="The load of others was a mistake of the account."
    )
    summary = run.cell.summaries.get(metric__name="tps")
    assert (summary.n, summary.maximum) == (5, 1e9)
    judged = certificate_words.judge_cells([run.cell_id])[run.cell_id]
    assert certificate_words.mark(judged) == "⚠ 1 invalid, counted by decision"
    page = text_of(client, f"/runs/{run.pk}/")
    assert "The load of others was a mistake of the account." in page


def test_nobody_is_told_to_add_rounds_on_a_machine_that_others_use(
    client, campaign, django_user_model
):
    campaign.cells.exclude(levels__clients=4).delete()
    client.force_login(django_user_model.objects.create_superuser("root"))
    page = text_of(client, "/campaigns/lab/")
    assert "the machine was not free" in page
    assert "more round" not in page


def test_what_was_measured_again_does_not_make_a_machine_taken(campaign):
    for run in Run.objects.filter(Run.LEFT_OUT, cell__levels__clients=4):
        again = factories.run(
            run.cell, repeat=run.repeat + ROUNDS, validity="valid", again_of=run
        )
        factories.finish(again, tps=4800.0)
    (judged,) = certificate_words.judge_cells({run.cell_id}).values()
    assert (judged.valid, judged.invalid, judged.again) == (5, 4, 4)
    assert not judged.was_machine_taken
