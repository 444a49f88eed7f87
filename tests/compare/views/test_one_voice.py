"""All doors say the same of the same cells: verdict, values, interval and sentence."""

import csv
import json
import math
import os
import random
import re
from dataclasses import dataclass, replace
from html import unescape

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext

from runs.analysis.inference import PROVEN
from runs.analysis.inference.verdicts import PRECEDENCE
from runs.archive.selectors import version_line
from runs.campaigns.selectors import answers as campaign_answers
from runs.campaigns.selectors import campaigns
from runs.campaigns.views import page as campaign_page
from runs.compare.selectors.address import head_and_base
from runs.compare.selectors.describe.verdict_words import NOT_PRINTED, VERDICTS, size
from runs.compare.selectors.judge import gate
from runs.compare.selectors.judge.ratios import ratios
from runs.models import (
    CacheVersion,
    Campaign,
    CellSummary,
    Project,
    Run,
    Scenario,
    Server,
)
from runs.shared import caching
from runs.shared.formats import estimate
from tests import factories
from tests.compared_tables import random_table
from tests.history_points import commit, history, repeats, sha, store

pytestmark = pytest.mark.django_db
SIDES = "base=campaign:lab~version%3D16.14&head=campaign:lab~version%3D18.4&metric=tps"


@pytest.fixture
def campaign():
    """Two versions, three numbers of clients, five rounds: faster, the same, undecided."""
    generator = random.Random(4)
    gains = {1: (1.2, 0.01), 2: (1.0, 0.004), 4: (1.03, 0.05)}
    made = factories.campaign("lab", repeats=5, parameters={"duration": 60})
    for run in made.runs.select_related("cell"):
        gain, scatter = gains[run.cell.levels["clients"]]
        value = 1000 * (gain if run.cell.version == "18.4" else 1.0)
        factories.finish(run, tps=value * generator.lognormvariate(0, scatter))
    # One run of each head is doubtful.
    made.runs.update(validity="valid")
    heads = made.runs.filter(cell__version="18.4", repeat=2)
    assert heads.update(validity="doubtful") == len(gains)
    made.state = "finished"
    made.save()
    return made


def text_of(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, address
    return re.sub(r"\s+", " ", answer.content.decode())


def test_nine_doors_say_the_same_of_the_same_cells(client, campaign):
    rows = {row.levels["clients"]: row.comparison for row in ratios(campaign, "tps")}
    told = {row.verdict for row in rows.values()}
    at = max(
        rows, key=lambda clients: rows[clients].base_value * rows[clients].head_value
    )
    words = [size(row) for row in rows.values()]

    api = client.get(f"/api/v1/compare/?{SIDES}").json()
    answers = {row["levels"]["clients"]: row for row in api["rows"]}
    (line,) = version_line.read(version_line.used("fixed-point-read")).pairs
    pages = {
        "campaign": text_of(client, "/campaigns/lab/"),
        "compare": text_of(client, "/compare/?s=lab"),
        "report": text_of(client, "/campaigns/lab/report/?format=html"),
        "markdown": text_of(client, f"/api/v1/compare/?{SIDES}&format=md"),
    }
    peak = {
        "versions": text_of(client, "/versions/"),
        "home": text_of(client, "/"),
    }
    badge = text_of(
        client, f"/campaigns/lab/badge.svg?{SIDES.split('&', maxsplit=1)[0]}"
    )

    assert len(told) > 1
    for clients, row in rows.items():
        same = {
            name: answers[clients][name] for name in ("verdict", "ratio", "low", "high")
        }
        assert same == {name: getattr(row, name) for name in same}
        assert answers[clients]["head_value"] == row.head_value
        assert answers[clients]["size"] == size(row)
    (average,) = {row.together for row in ratios(campaign, "tps")}
    (told_average,) = api["together"]
    assert told_average["metric"] == "tps"
    for name in ("verdict", "ratio", "low", "high"):
        assert told_average[name] == getattr(average, name)
    for name, page in pages.items():
        assert size(average) in page, name
    assert size(average) in peak["home"]
    assert line.comparison == rows[line.head.clients]
    assert line.head.clients == at
    for name, page in pages.items():
        assert all(word in page for word in words), name
    for name, page in peak.items():
        assert size(rows[at]) in page, name
    assert {row.judged.doubtful for row in rows.values()} == {1}
    for name, page in (pages | peak).items():
        assert "⚠ 1 doubtful" in page, name
    # Charts and files mark them too.
    assert "5 (1 doubtful)" in pages["campaign"]
    assert "-open&quot;" in pages["campaign"] or '-open"' in pages["campaign"]
    assert "5 (1 doubtful)" in pages["compare"]
    table = client.get("/compare/?s=lab&format=csv").content.decode()
    assert [line.split(",")[7] for line in table.splitlines()] == [
        "doubtful",
        *"000111",
    ]
    listed = client.get("/campaigns/lab/export.csv").getvalue().decode()
    assert listed.count(",doubtful,") == len(rows)
    assert api["exit_code"] == (2 if "undecided" in told else 0)
    assert "no revisions" in badge


def test_a_stored_verdict_says_the_same_as_when_it_was_given(campaign):
    sides = (f"campaign:lab~version={version}" for version in ("16.14", "18.4"))
    both = head_and_base.both(*sides, campaign="", reader=AnonymousUser())
    given = gate.compare_sides(*both, gate.Criteria())
    stored = json.loads(json.dumps(gate.as_json(given)))

    CellSummary.objects.update(log_mean=1.0, median=5000)

    found = gate.from_json(stored, *both)
    assert (found.rows, found.together) == (given.rows, given.together)
    assert len(found.together) == 1


def uploaded_twin(campaign):
    """The runs of 16.14 and 18.4 as an upload: two commits, with the rounds they were made in."""
    runs = campaign.runs.select_related("cell").order_by("repeat", "pk")
    made = []
    for number, version in enumerate(("16.14", "18.4")):
        for run in runs.filter(cell__version=version):
            value = run.measurements.get(metric__name="tps").value
            (each,) = repeats(
                commit(number),
                levels={"clients": run.cell.levels["clients"]},
                tps=[value],
            )
            made.append(replace(each, round=run.repeat))
    store(made)


def test_badge_gate_comment_and_pages_say_the_same_of_two_commits(client, campaign):
    """The doors that only revisions have, with the numbers of the campaign above."""
    uploaded_twin(campaign)
    rows = {row.levels["clients"]: row.comparison for row in ratios(campaign, "tps")}
    sides = f"campaign=nightly&base=revision:{sha(0)}&head=revision:{sha(1)}&metric=tps"

    api = client.get(f"/api/v1/compare/?{sides}").json()
    first, last = (f"nightly~revision%3D{sha(number)[:12]}" for number in (0, 1))
    pages = {
        "markdown": text_of(client, f"/api/v1/compare/?{sides}&format=md"),
        "compare": text_of(client, f"/compare/?s={first}&s={last}"),
    }
    badge = text_of(client, "/campaigns/nightly/badge.svg")

    for row in api["rows"]:
        twin = rows[row["levels"]["clients"]]
        assert row["verdict"] == twin.verdict
        for name in ("ratio", "low", "high"):
            assert row[name] == pytest.approx(getattr(twin, name), rel=1e-9), name
        for name, page in pages.items():
            assert row["size"] in page, name
    assert len(api["rows"]) == len(rows)
    # One row is undecided, and none is slower: so is the whole.
    assert {row["verdict"] for row in api["rows"]} == {"faster", "undecided"}
    assert api["exit_code"] == 2
    assert str(VERDICTS["undecided"]) in badge


def test_badge_and_gate_say_how_much_slower_a_commit_is(client):
    store(history([1000, 900], noise=0.001))
    sides = f"campaign=nightly&base=revision:{sha(0)}&head=revision:{sha(1)}&metric=tps"

    api = client.get(f"/api/v1/compare/?{sides}").json()
    (row,) = api["rows"]
    head = f"nightly~revision%3D{sha(1)[:12]}"
    pages = {
        "badge": text_of(client, "/campaigns/nightly/badge.svg"),
        "markdown": text_of(client, f"/api/v1/compare/?{sides}&format=md"),
        "compare": text_of(
            client, f"/compare/?s=nightly~revision%3D{sha(0)[:12]}&s={head}"
        ),
    }

    assert (row["verdict"], api["exit_code"]) == ("slower", 1)
    for name, page in pages.items():
        assert row["size"] in page, name


@dataclass(frozen=True)
class Said:
    """What a door says of head against base in one condition, in its own words."""

    word: str
    ratio: str
    interval: str
    size: str


def plain(html):
    """The text of a piece of HTML in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def rows_of_table(html):
    """The cells of the rows of a table, as HTML."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]


def word_in(html):
    return plain(re.search(r'class="badge[^>]*>(.*?)</span>', html, re.DOTALL).group(1))


def rows_of_markdown(text):
    """The rows of the first table by its heads, without what makes it a table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    heads, _rule, *rows = [line.strip("| ").split(" | ") for line in lines]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def in_numbers(inference):
    """A ratio and its interval as they are printed."""
    ratio, low, high = (inference[name] for name in ("ratio", "low", "high"))
    interval = f"{low:.3f} – {high:.3f}" if low and high else "–"
    return ("–" if ratio is None else f"{ratio:.3f}"), interval


def said_by_api(row):
    codes = {reason["code"] for reason in row["reasons"]}
    is_of_print = row["verdict"] == "too_few_runs" and codes and codes <= NOT_PRINTED
    word = "not tested" if is_of_print else str(VERDICTS[row["verdict"]])
    return Said(word, *in_numbers(row), row["size"])


def said_by_page(cells):
    ratio, interval, size_text, _p, verdict_cell = cells[-5:]
    return Said(word_in(verdict_cell), plain(ratio), plain(interval), plain(size_text))


def badge_of(api):
    """The badge's text from the API's rows: their common size is there if it is that of one."""
    rows = [
        row for row in api["rows"] if row["verdict"] == api["overall"] and row["ratio"]
    ]
    if not rows:
        return [str(VERDICTS[api["overall"]])]
    if api["overall"] not in PROVEN:
        row = max(rows, key=lambda row: abs(math.log(row["ratio"])))
        return [said_by_api(row).word]
    sizes = [rows[0]["size"]] if len(rows) == 1 else []
    counts = [] if len(api["rows"]) == 1 else [f"{len(rows)} of {len(api['rows'])}"]
    return sizes + counts


# Ten tables each: three here, and all 300 with --all.
SEEDS = [
    63,
    64,
    65,
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 127)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_all_doors_say_the_same_of_random_tables(client, settings, seed):
    """Page, charts, two cells, files, report, API with its answer, Markdown and badge."""
    settings.RATE_ANONYMOUS = 0
    generator = random.Random(seed)
    verdicts = set()
    for number in range(10):
        table = random_table(generator, number)
        api = client.get(f"/api/v1/compare/?{table.sides}").json()
        verdicts |= {row["verdict"] for row in api["rows"]}
        assert_doors_agree(client, table, api)
    assert len(verdicts) > 3, "the tables are too much alike"


def assert_doors_agree(client, table, api):
    page = client.get(f"/compare/?{table.series}").content.decode()
    file = client.get(f"/compare/?{table.series}&format=json").json()
    listed = client.get(f"/compare/?{table.series}&format=csv").content.decode()
    report = client.get(f"/compare/report/?{table.series}&format=html").content.decode()
    markdown = client.get(f"/api/v1/compare/?{table.sides}&format=md").content.decode()
    comparison = {
        row["levels"]["clients"]: row
        for row in api["rows"]
        if row["base"] and row["head"]
    }
    said = {clients: said_by_api(row) for clients, row in comparison.items()}

    # The file has the figures that were tested.
    of_file = {row["x"] or next(iter(comparison)): row for row in file["rows"]}
    assert of_file.keys() == comparison.keys(), table
    for clients, row in of_file.items():
        for name in (
            "verdict",
            "ratio",
            "low",
            "high",
            "adjusted_p_value",
            "more_rounds",
        ):
            assert row[name] == comparison[clients][name], (table, clients, name)
        codes = [reason["code"] for reason in comparison[clients]["reasons"]]
        assert row["reasons"] == codes, (table, clients)
    if len(comparison) == len(api["rows"]):
        names = ("verdict", "ratio", "low", "high")
        of_page = [[average[name] for name in names] for average in file["averages"]]
        of_api = [[average[name] for name in names] for average in api["together"]]
        assert of_page == of_api, table

    assert_charts_draw(page, table, comparison)

    # The page draws them, with the largest effects first, and so does the page of two cells.
    rows = rows_of_table(page.partition('id="ratio-rows"')[2].partition("</table>")[0])
    shown = {
        int(plain(cells[1])) if len(cells) == 9 else next(iter(comparison)): cells
        for cells in rows
        if len(cells) in (8, 9) and "compare/cells" in cells[0]
    }
    assert {clients: said_by_page(cells) for clients, cells in shown.items()} == said, (
        table
    )
    effects = [abs(math.log(comparison[clients]["ratio"] or 1.0)) for clients in shown]
    assert effects == sorted(effects, reverse=True), table
    for clients, cells in shown.items():
        address = unescape(re.search(r'href="([^"]+)"', cells[0]).group(1))
        text = client.get(address).content.decode()
        (line,) = (row for row in rows_of_table(text) if plain(row[0]) == "tps")
        of_cells = f"{said[clients].ratio} {said[clients].size}".strip()
        assert plain(line[3]) == of_cells, (table, clients)
        assert plain(line[4]) == said[clients].interval, (table, clients)
        assert word_in(line[5]) == said[clients].word, (table, clients)

    # Markdown has the same rows, those that prove something first.
    of_markdown = {}
    for row in rows_of_markdown(markdown):
        clients = int(row["Condition"].rpartition("clients ")[2])
        if clients not in comparison:
            continue
        word, _colon, why = row["Verdict"].partition(" ")[2].partition(": ")
        assert row["Size"].startswith(said[clients].size or ""), (table, clients)
        messages = "; ".join(
            reason["message"] for reason in comparison[clients]["reasons"]
        )
        assert why.startswith(messages), (table, clients)
        assert bool(why) == bool(messages or comparison[clients]["more_rounds"]), (
            table,
            clients,
        )
        assert why in plain(shown[clients][-1]), (table, clients)
        of_markdown[clients] = Said(
            word, row["Ratio"], row["Interval"], said[clients].size
        )
    assert of_markdown == said, table
    order = [
        PRECEDENCE.index(comparison[clients]["verdict"]) for clients in of_markdown
    ]
    assert order == sorted(order), table
    assert markdown.startswith("### "), table
    assert markdown.splitlines()[0].endswith(api["message"]), table

    # The words of a row in files and in the report.
    of_listed = list(csv.DictReader(listed.splitlines()))
    told = [row for row in of_listed if row["Verdict"]]
    assert len(told) == len(said), table
    for row in told:
        clients = int(row.get("Clients") or next(iter(comparison)))
        assert row["Verdict"].split(":")[0] == said[clients].word, (table, clients)
        assert float(row["Ratio"] or 0) == (comparison[clients]["ratio"] or 0), (
            table,
            clients,
        )
        assert float(row["Low"] or 0) == (comparison[clients]["low"] or 0), (
            table,
            clients,
        )
        assert row["Verdict"] in plain(report), (table, clients)

    assert_answers(api, table)

    # One sentence, in which only the names of the sides are others.
    sentence = plain(re.search(r'class="answer">(.*?)</h1>', page, re.DOTALL).group(1))
    assert sentence in plain(report), table
    (base_label, head_label) = (series["label"] for series in file["series"])
    (bold,) = re.findall(r"^\*\*(.*)\*\*$", markdown, re.MULTILINE)
    assert (
        re.sub(r"\\(.)", r"\1", bold).replace("\u200b", "") == api["answer"]["sentence"]
    ), table
    # Without what keeps a name from being Markdown of its own.
    renamed = re.sub(r"\\(.)", r"\1", bold).replace("\u200b", "")
    renamed = renamed.replace(api["head"]["label"], head_label)
    renamed = renamed.replace(api["base"]["label"], base_label)
    if len(comparison) == len(api["rows"]):
        assert renamed == sentence, table

    if table.kind == "uploaded":
        # The same question: without a base the badge asks for its branch's last points.
        address = f"/campaigns/{table.campaign}/badge.svg?base=revision:{table.base}"
        badge = plain(client.get(address).content.decode())
        assert all(text in badge for text in badge_of(api)), (table, badge)


def charts_of(html):
    """The figures of a page, as their data."""
    found = re.findall(r'<script[^>]*application/json">(.*?)</script>', html, re.DOTALL)
    return [json.loads(unescape(text)) for text in found]


def assert_answers(api, table):
    """The answer in short has the figures and the words of the whole."""
    answer = api["answer"]
    assert answer["exit_code"] == api["exit_code"], table
    assert answer["family"], table
    if len(api["together"]) == 1:
        (whole,) = api["together"]
        assert (answer["low"], answer["high"]) == (whole["low"], whole["high"]), table


def assert_charts_draw(page, table, comparison):
    """What is drawn is what was tested: values with their runs, ratios with their intervals.

    A figure has seven digits of each number.
    """
    figures = charts_of(page)
    is_forest = ["error_x" in figure["data"][0] for figure in figures]
    lines = [
        dict(zip(trace["x"], trace["y"], strict=True))
        for figure, is_of_ratios in zip(figures, is_forest, strict=True)
        for trace in figure["data"]
        if not is_of_ratios
    ]
    for name, drawn in zip(("base_value", "head_value"), lines, strict=False):
        if len(lines) != 2:
            break
        for clients, row in comparison.items():
            if row[name] is not None and clients in drawn:
                assert drawn[clients] == pytest.approx(row[name], rel=1e-6), (
                    table,
                    clients,
                )
    ratios_drawn = sorted(
        (
            x,
            x - less if less is not None else None,
            x + more if more is not None else None,
        )
        for figure, is_of_ratios in zip(figures, is_forest, strict=True)
        for trace in figure["data"]
        if is_of_ratios
        for x, less, more in zip(
            trace["x"],
            trace["error_x"]["arrayminus"],
            trace["error_x"]["array"],
            strict=True,
        )
    )
    tested = sorted(
        (row["ratio"], row["low"], row["high"])
        for row in comparison.values()
        if row["ratio"]
    )
    assert len(ratios_drawn) == len(tested), table
    for drawn, row in zip(ratios_drawn, tested, strict=True):
        ends = [end for end in row if end is not None]
        assert [end for end in drawn if end is not None] == pytest.approx(
            ends, rel=1e-5
        ), table


@pytest.mark.parametrize("scatter", [0.001, 0.05, 0.3])
def test_one_ratio_has_one_interval_in_words_table_and_charts(client, scatter):
    """The line of versions, its sentence, the campaign's table, its chart and its cells."""
    made = factories.campaign(
        "line", factors={"version": ["16.14", "18.4"], "clients": [8]}, repeats=3
    )
    generator = random.Random(7)
    for run in made.runs.select_related("cell"):
        factories.finish(run, tps=400 * generator.lognormvariate(0, scatter))
    Campaign.objects.filter(pk=made.pk).update(
        state="finished", parameters={"duration": 60}
    )

    (row,) = ratios(made, "tps")
    tested = row.comparison
    (line,) = charts_of(text_of(client, "/versions/"))
    (trace,) = line["data"]
    assert trace["x"] == ["16", "18"]
    _low, _high, _base, index, *_note = trace["customdata"][1]
    assert index == pytest.approx(tested.ratio, rel=1e-5)
    assert trace["customdata"][1][:2] == pytest.approx(
        [tested.low, tested.high], rel=1e-5
    )

    page = text_of(client, "/campaigns/line/")
    (bars,) = charts_of(page)
    assert bars["data"][0]["y"] == pytest.approx(
        [tested.base_value, tested.head_value], rel=1e-6
    )
    measured = [
        sorted(
            run.measurements.get(metric__name="tps").value
            for run in made.runs.filter(cell=cell)
        )
        for cell in made.cells.order_by("ordinal")
    ]
    behind = [sorted(runs) for runs in bars["data"][0]["meta"]["runs"]]
    assert behind == [pytest.approx(values, rel=1e-5) for values in measured]
    # The cells, the table and the labels of the bars write the same.
    values = [estimate(value) for value in (tested.base_value, tested.head_value)]
    assert bars["data"][0]["text"] == values
    for value in values:
        assert page.count(f"> {value} <") + page.count(f">{value}<") >= 3, value


def other(campaign):
    """One more campaign executed here: what the noise of its machine is like."""
    made = factories.campaign(
        "other", on=campaign.runs.first().server, state="finished"
    )
    factories.finish_all(made)


TOKEN = re.compile(r'(?<=name="csrfmiddlewaretoken" value=")[^"]+')
CHANGES = {
    "a run in doubt": lambda lab: lab.runs.filter(repeat=1).update(validity="doubtful"),
    "a run withdrawn": lambda lab: lab.runs.filter(repeat=1).update(state="withdrawn"),
    "a run removed": lambda lab: lab.runs.filter(repeat=2)[0].delete(),
    "a title": lambda lab: Campaign.objects.filter(pk=lab.pk).update(
        title="Another title"
    ),
    "a server's name": lambda lab: Server.objects.update(name="Renamed"),
    "another campaign that has ended": other,
    "a scenario's title": lambda lab: Scenario.objects.filter(
        pk=lab.scenario_id
    ).update(title="B"),
}


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_kept_until_anything_changes_that_it_is_made_of():
    lab = factories.campaign("lab", repeats=3, on=factories.server())
    factories.finish_all(lab)
    made = []

    def ask(key="key", which="results"):
        before = len(made)
        version = getattr(caching.versions([lab.pk]), which)
        assert (
            caching.answer(key, version, lambda: made.append(key) or "text") == "text"
        )
        return len(made) > before

    assert [ask(), ask(), ask("other"), ask()] == [True, False, True, False]
    for what, change in CHANGES.items():
        ask()
        change(lab)
        assert (ask(), ask()) == (True, False), what
    ask()
    ask("key", "whole")
    at_work = factories.campaign("at-work", on=lab.runs.first().server)
    factories.finish(at_work.runs.first())
    Run.objects.filter(pk=at_work.runs.last().pk).update(state="claimed")
    Server.objects.update(checked_at=timezone.now(), needs_sweep=True)
    assert not ask(), "nothing of this is judged"
    lab.runs.filter(repeat=1).update(message="It says more.", state="failed")
    assert not ask(), "only what lists runs shows it"
    assert ask("key", "whole")
    with transaction.atomic():
        assert (ask(), ask()) == (True, True)
    Campaign.objects.update(origin="uploaded")
    CacheVersion.objects.all().delete()
    assert (ask(), ask()) == (True, True)


@pytest.mark.django_db(transaction=True)
def test_pages_are_made_without_redis(client, monkeypatch):
    lab = factories.campaign("lab", repeats=3, on=factories.server())
    factories.finish_all(lab)
    before = TOKEN.sub("", client.get("/campaigns/lab/").content.decode())
    monkeypatch.setattr(caching._Redis, "away_until", 0.0)
    monkeypatch.setattr(caching, "cache", RedisCache("redis://127.0.0.1:9/0", {}))
    assert TOKEN.sub("", client.get("/campaigns/lab/").content.decode()) == before


@pytest.mark.django_db(transaction=True)
def test_pages_of_what_is_finished_are_read_from_what_is_kept(
    client, django_assert_num_queries
):
    lab = factories.campaign("lab", repeats=3, parameters={"duration": 60})
    factories.finish_all(lab)
    Campaign.objects.update(state="finished")
    for language in ("en", "ja"):
        client.get("/", headers={"Accept-Language": language})
    for language in ("en", "ja"):
        with django_assert_num_queries(12):
            client.get("/", headers={"Accept-Language": language})
    addresses = ("/versions/", "/compare/?s=lab", f"/api/v1/compare/?{SIDES}")

    def ask(address, **headers):
        return TOKEN.sub("", client.get(address, headers=headers).content.decode())

    first = {address: ask(address) for address in ("/", *addresses)}
    # The page of versions asks which campaigns have the other load, too.
    for address, count in zip(addresses, (6, 2, 4), strict=True):
        with django_assert_num_queries(count):
            assert ask(address) == first[address]
    assert ask("/") == first["/"]
    for address, title in zip(
        addresses[:2], ("Step by step", "Ratios by effect"), strict=True
    ):
        with translation.override("ja"):
            japanese = gettext(title)
        assert japanese in ask(address, **{"Accept-Language": "ja"}), address
        assert ask(address) == first[address]

    lab.project = Project.objects.create(slug="secret", name="s", is_public=False)
    lab.save()
    for address in ("/", *addresses[:2]):
        assert "16.14" not in ask(address), address
    assert client.get(addresses[2]).status_code == 400


SHAPE = {"version": ["16.14", "17.6", "18.4"], "clients": [1, 4]}
ADDRESSES = (
    "/",
    "/versions/",
    "/versions/?clients=4",
    "/compare/?s=at-work&s=ended-0",
    "/api/v1/compare/?base=campaign:ended-1&head=campaign:at-work",
    "/campaigns/at-work/",
    "/campaigns/ended-0/",
)


def a_lab(generator):
    """Two campaigns that have ended and one at work on one server: a third of its runs is ahead."""
    server = factories.server()
    for slug, ahead in (("ended-0", 4), ("ended-1", 4), ("at-work", 3)):
        made = factories.campaign(
            slug, factors=SHAPE, repeats=4, on=server, parameters={"duration": 60}
        )
        runs = made.runs.select_related("cell").filter(repeat__lte=ahead)
        with transaction.atomic():
            factories.finish_many({run: {"tps": drawn(run, generator)} for run in runs})
        state = "finished" if ahead == made.repeats else "running"
        Campaign.objects.filter(pk=made.pk).update(state=state)
    return made


def drawn(run, generator):
    scatter = 0.002 * (1 + run.campaign_id % 3)
    return 1000 * run.cell.levels["clients"] * generator.lognormvariate(0, scatter)


def any_run(generator, **which):
    return generator.choice(list(Run.objects.filter(**which).order_by("pk")))


def a_run_finishes(generator):
    ahead = list(Run.objects.filter(state="queued").order_by("pk"))
    if ahead:
        factories.finish(ahead[0], tps=drawn(ahead[0], generator))


def a_run_is_judged(generator):
    run = any_run(generator, state="finished")
    Run.objects.filter(pk=run.pk).update(
        validity=generator.choice(["invalid", "doubtful", ""])
    )


def a_run_is_deleted(generator):
    run = any_run(generator, state="finished")
    run.delete()
    factories.summary(run.cell, "tps")


def a_figure_is_corrected(generator):
    run = any_run(generator, state="finished")
    run.measurements.update(value=drawn(run, generator))
    run.save()
    factories.summary(run.cell, "tps")


def a_campaign_is_hidden_or_shown(generator):
    hidden, _made = Project.objects.get_or_create(
        slug="hidden", name="h", is_public=False
    )
    of = generator.choice(list(Campaign.objects.order_by("pk")))
    of.project = None if of.project == hidden else hidden
    of.save()


def a_campaign_ends_or_goes_on(generator):
    of = generator.choice(list(Campaign.objects.order_by("pk")))
    Campaign.objects.filter(pk=of.pk).update(
        state="running" if of.state == "finished" else "finished"
    )


def a_run_is_claimed(generator):
    ahead = list(Run.objects.filter(state="queued").order_by("pk"))
    if ahead and not Run.objects.filter(state="claimed").exists():
        # Not begun: what is left of it would depend on the second in which a page is made.
        Run.objects.filter(pk=ahead[0].pk).update(state="claimed")


def a_campaign_is_paused_or_renamed(generator):
    of = generator.choice(list(Campaign.objects.order_by("pk")))
    paused_at = None if of.paused_at else timezone.now()
    title = f"{of.slug}, {generator.random()}"
    Campaign.objects.filter(pk=of.pk).update(paused_at=paused_at, title=title)


def a_server_changes(generator):
    server = Server.objects.get()
    Server.objects.update(name=f"{generator.random()}", state="unreachable")
    factories.installation(server, version=f"17.{server.installations.count()}")


ANY = (
    a_run_finishes,
    a_run_is_judged,
    a_run_is_deleted,
    a_run_is_claimed,
    a_figure_is_corrected,
    a_campaign_is_hidden_or_shown,
    a_campaign_ends_or_goes_on,
    a_campaign_is_paused_or_renamed,
    a_server_changes,
)


def forget():
    """As if nothing had been asked for so far."""
    cache.clear()


def answers(client):
    found = {}
    for address in ADDRESSES:
        answer = client.get(address)
        found[address] = answer.status_code, TOKEN.sub("", answer.content.decode())
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "changes",
    [9, *(pytest.param(each, marks=pytest.mark.slow) for each in (24, 25, 62))],
)
def test_pages_of_parts_that_are_kept_are_those_made_of_nothing(
    client, changes, monkeypatch, settings
):
    settings.RATE_ANONYMOUS = 0
    # For how long something is silent, and how long runs take yet, is said each time.
    monkeypatch.setattr(campaign_page, "silences", list)
    monkeypatch.setattr(
        campaigns, "_seconds_left", lambda left, mean, _started: left * 60.0
    )
    monkeypatch.setattr(campaign_page, "ESTIMATE_SECONDS", 1e9)
    generator = random.Random(changes)
    a_lab(generator)
    forget()
    drawn_changes = [
        *ANY,
        *(generator.choice(ANY) for _more in range(changes - len(ANY))),
    ]
    generator.shuffle(drawn_changes)
    answers(client)
    for number, change in enumerate(drawn_changes):
        with transaction.atomic():
            change(generator)
        if number % 3 < 2 and "BENCHLAB_TEST_ALL" not in os.environ:
            continue  # pages are compared after each third change
        of_parts = answers(client)
        forget()
        of_nothing = answers(client)
        for address, (status, told) in of_parts.items():
            parts, nothing = told.splitlines(), of_nothing[address][1].splitlines()
            apart = [
                both for both in zip(parts, nothing, strict=False) if both[0] != both[1]
            ]
            assert not apart, (number, change.__name__, address)
            assert (status, len(parts)) == (of_nothing[address][0], len(nothing)), (
                address
            )
    # The line says of a campaign what its own page does.
    line = version_line.read(version_line.used("fixed-point-read"))
    for pair in line.pairs:
        if pair.base.version == "16.14":
            assert pair.comparison in [
                row.comparison for row in ratios(pair.campaign, "tps")
            ]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_finishes_leaves_what_has_ended_as_it_is(
    client, monkeypatch, django_assert_max_num_queries
):
    generator = random.Random(1)
    a_lab(generator)
    made = []

    def noted(function):
        def make(*arguments):
            made.append(function.__name__)
            return function(*arguments)

        return make

    monkeypatch.setattr(version_line, "material", noted(version_line.material))
    monkeypatch.setattr(
        campaign_answers,
        "ratios_of_executed",
        noted(campaign_answers.ratios_of_executed),
    )
    forget()
    answers(client)
    client.get("/compare/?s=ended-0")
    assert set(made) == {"material", "ratios_of_executed"}
    made.clear()
    with transaction.atomic():
        a_run_finishes(generator)
    with django_assert_max_num_queries(13):
        client.get("/")
    assert made == []
    with django_assert_max_num_queries(3):
        client.get("/compare/?s=ended-0")
