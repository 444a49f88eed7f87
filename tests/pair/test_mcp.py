"""`benchlab-mcp`: an agent's session by the package's own client, over stdin and stdout."""

import asyncio
import json
import os
import re
import sys

import pytest
from mcp import Client, StdioServerParameters

from runs.archive import services
from runs.models import Run
from runs.pair import mcp_server
from runs.pair.mcp_server import LEFT_OUT, MOST_ANSWER, MOST_ROWS, Reader, bounded, main
from runs.pair.reads import Instance, ReadError
from runs.published import reading
from tests.api.web_server import ROOT

pytestmark = pytest.mark.django_db(transaction=True)
PROGRAM = (
    "import sys; sys.modules['django'] = None;"
    "from runs.pair.mcp_server import main; sys.exit(main())"
)


async def _session(url, token, calls):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM],
        env={**os.environ, "BENCHLAB_URL": url, "BENCHLAB_TOKEN": token},
        cwd=str(ROOT),
    )
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        results = [await client.call_tool(name, given) for name, given in calls]
    return tools, results


def session(lab, *calls, token=""):
    """The tools of a session, and the results of its calls."""
    return asyncio.run(_session(lab.url, token, calls))


def answer_of(result):
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


def test_a_session_reads_and_offers_nothing_else(lab):
    number = Run.objects.filter(campaign__slug="lab").first().pk

    tools, results = session(
        lab,
        ("search", {"words": "checksums"}),
        ("campaign", {"slug": "lab"}),
        (
            "compare",
            {
                "head": "campaign:lab~version=17.9",
                "base": "campaign:lab~version=16.14",
                "metric": "tps",
            },
        ),
        ("history", {"campaign": "nightly"}),
        ("versions", {"old": "13", "new": "17"}),
        ("run", {"number": number}),
    )

    assert {tool.name for tool in tools} == {
        "search",
        "campaign",
        "compare",
        "history",
        "versions",
        "run",
        "publication",
    }
    assert all(tool.annotations.read_only_hint for tool in tools)
    for result in results:
        answer = answer_of(result)
        assert answer["sentence"]
        assert answer["address"].startswith(lab.url)
        assert len(result.content[0].text) <= 2 * MOST_ANSWER
    found, campaign, compared, history, versions, run = map(answer_of, results)
    assert "Checksums" in [row["name"] for row in found["results"]]
    assert "% faster" in campaign["sentence"].replace("\xa0", " ")
    low, high = compared["interval"]
    assert 1 < low < 1.1 < high
    assert compared["holds_for"]
    assert {row["verdict"] for row in compared["conditions"]} == {"faster"}
    assert "error_row" in compared
    assert "% slower" in history["sentence"].replace("\xa0", " ")
    assert history["conditions"][0]["changes"][0]["verdict"] == "slower"
    assert versions["conditions"]
    assert run["validity"]
    assert run["measurements"][0]["metric"] == "tps"


def test_each_answer_is_that_of_the_api_word_for_word(lab):
    instance = Instance(lab.url)
    reader = Reader(instance)

    for told, asked in (
        (reader.campaign("lab"), instance.get("campaigns/lab/")["answer"]),
        (
            reader.history("nightly"),
            instance.get("history/", {"campaign": "nightly"})["answer"],
        ),
    ):
        assert told["sentence"] == asked["sentence"]
        assert told["holds_for"] == asked["family"]
        assert told["interval"] in (None, [asked["low"], asked["high"]])


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("campaign", {"slug": "hidden"}),
        ("compare", {"head": "campaign:hidden"}),
        ("history", {"campaign": "hidden"}),
    ],
)
def test_the_tokens_rights_hold(lab, tool, given):
    for token in ("", lab.strangers_token):
        _tools, (result,) = session(lab, (tool, given), token=token)
        assert result.is_error
        assert "Hidden" not in result.content[0].text


def test_a_member_reads_the_project_and_a_stranger_finds_nothing(lab):
    calls = (("search", {"words": "checksums"}), ("campaign", {"slug": "hidden"}))

    _tools, (found, hidden) = session(lab, *calls, token=lab.members_token)
    _tools, (others, _refused) = session(lab, *calls, token=lab.strangers_token)

    assert "Hidden checksums" in found.content[0].text
    assert answer_of(hidden)["address"].endswith("/campaigns/hidden/")
    assert "Hidden" not in others.content[0].text


def test_a_fault_is_told_in_the_words_of_the_instance(lab):
    _tools, results = session(
        lab,
        ("campaign", {"slug": "../tokens"}),
        ("campaign", {"slug": "none"}),
        ("versions", {"old": "99", "new": "17"}),
    )

    texts = [result.content[0].text for result in results]
    assert all(result.is_error for result in results)
    assert "is no name" in texts[0]
    assert "404" in texts[1]
    assert "400" in texts[2]


def test_a_publication_has_its_tables(lab):
    files = [file for file in reading.files() if file.stem == "wg1-2013"]
    services.load(files=files)

    answer = Reader(Instance(lab.url)).publication("wg1-2013")

    assert answer["year"] == 2013
    assert {"number", "title", "campaign", "figures"} == set(answer["conditions"][0])
    assert answer["contradictions"] >= 0


def test_lists_and_texts_are_bounded_and_say_so():
    rows = [{"text": "x" * 5000}] * 50

    shown = bounded(rows)

    assert len(shown) == MOST_ROWS + 1
    assert shown[-1] == {LEFT_OUT: 30}
    assert len(shown[0]["text"]) == mcp_server.MOST_TEXT


def test_an_answer_has_room_for_its_sentence_whatever_comes_with_it():
    whole = Reader(Instance("http://localhost"))._answer(
        {"sentence": "So it is.", "low": 1, "high": 2},
        "http://localhost/",
        small=[1],
        large={str(number): "x" * 500 for number in range(500)},
    )

    assert len(json.dumps(whole)) <= MOST_ANSWER
    assert (whole["sentence"], whole["interval"]) == ("So it is.", [1, 2])
    assert whole["small"] == [1]
    assert LEFT_OUT in whole["large"]


def test_without_an_address_it_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.delenv("BENCHLAB_URL", raising=False)

    assert main([]) == 64
    assert "is not an address" in capsys.readouterr().err


def test_the_page_names_every_tool():
    """docs/notebooks.md"""
    text = (ROOT / "docs/notebooks.md").read_text()
    named = set(re.findall(r"`(\w+)`", text))
    with pytest.raises(ReadError):
        Instance("")
    tools = mcp_server.tools(Reader(Instance("http://localhost")))
    assert {tool.__name__ for tool in tools} <= named
