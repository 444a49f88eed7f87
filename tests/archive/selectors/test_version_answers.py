"""From one version to another: what is known, what is not, and that all doors say the same."""

import re
from html import unescape

import pytest
from django.utils import translation

from runs.archive import services
from runs.archive.selectors import version_answers, version_line
from runs.models import CacheVersion
from runs.published import reading
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def archive_to_14(whole_archive):
    """The publications that end with version 14, on machines of their own: there are gaps."""
    services.load(
        files=[
            path for path in reading.files() if reading.read(path).source.year < 2022
        ]
    )


def line(clients=None):
    return version_line.read(version_line.used(version_line.READ), clients=clients)


def answer(base="", head="", clients=None):
    return version_answers.answer(
        line(clients), version_line.READ, base=base, head=head
    )


def test_a_gap_is_said_and_what_is_known_in_between(archive_to_14):
    found = answer("13", "17")

    assert not found.is_known
    assert found.sentence == (
        "PostgreSQL 13 to 17, counting ranges of rows: as printed, 14 is 2.2 % slower than 13; "
        "nobody has measured 14 to 17."
    )
    assert [step.state for step in found.steps] == [
        "printed",
        "unknown",
        "unknown",
        "unknown",
    ]
    assert (found.low, found.high, found.exit_code) == (None, None, 2)


def test_steps_of_several_publications_are_never_multiplied(archive_to_14):
    found = answer("9.2", "14")

    assert not found.is_known
    assert "3 of 9 steps are known" in found.sentence
    assert (
        "steps are multiplied only where one machine measured them all"
        in found.details[-1]
    )


def test_what_one_machine_measured_of_the_way_is_in_the_title(whole_archive):
    found = answer("11", "16")
    known = answer("12", "16")

    assert not found.is_known
    assert known.is_known
    assert "nobody has measured 11 to 12" in found.sentence
    assert known.whole.part in found.sentence


def test_nobody_knows_anything(archive_to_14):
    assert (
        answer("14", "15").sentence == "Nobody has measured PostgreSQL 15 against 14."
    )
    assert answer("14", "16").sentence == (
        "Nobody has measured any step from PostgreSQL 14 to 16."
    )


def test_a_picture_is_known_in_words(whole_archive):
    found = answer("9.6", "10")

    assert found.whole.state == "words"
    assert "printed as a picture: 10 is slightly above 9.6" in found.sentence


def test_without_a_choice_it_goes_from_the_newest_known_step_to_the_newest_version(
    archive_to_14,
):
    found = answer()

    assert (found.base, found.head) == ("13", version_line.MAJORS[-1])


def test_of_what_is_printed_the_newest_year_is_said_whenever_it_was_loaded(
    whole_archive,
):
    printed_steps = [
        step for step in version_answers.steps(line()) if step.state == "printed"
    ]
    years = [
        [
            evidence.campaign.year
            for evidence in step.evidence
            if evidence.state == "printed"
        ]
        for step in printed_steps
    ]

    assert any(len(set(of_step)) > 1 for of_step in years)
    assert years == [sorted(of_step, reverse=True) for of_step in years]


def test_what_publications_say_otherwise_stands_beside_with_its_table(whole_archive):
    """From 13 to 17 five tables of four machines answer, and do not agree; one has two runs."""
    found = answer("13", "17")

    assert found.is_known
    assert len(found.whole.evidence) == 5
    assert found.sentence.startswith(
        "PostgreSQL 17 against 13, counting ranges of rows: "
    )
    assert "3.0 to 6.7 % slower in the table that prints repeats" in found.sentence
    assert "in 4 others, which are not tested" in found.sentence
    assert found.verdict == "slower"
    assert "8.2" in found.sentence
    assert "1.8" in found.sentence
    told = " ".join(found.details)
    for size in ("0.5 % slower", "1.8 % faster", "8.2 % slower", "0.05 % faster"):
        assert f"PostgreSQL 17 is {size} than PostgreSQL 13" in told
    assert "on 32 cores, cached, two runs" in told
    assert len({evidence.basis for evidence in found.whole.evidence}) == 5


def test_a_step_that_several_tables_print_says_from_the_least_to_the_greatest(
    whole_archive,
):
    """The cell on the first page, and the title that is about the same step."""
    several = [step for step in version_answers.steps(line()) if step.printed]
    assert several
    for step in several:
        changes = [(ratio - 1) * 100 for ratio in step.printed_ratios]
        for end in (min(changes), max(changes)):
            assert f"{end:+.1f}" in step.short
        assert f"{len(changes)} printed tables" in step.basis
        assert f"{len(changes)} printed tables" in answer(step.base, step.head).sentence


def test_backwards_is_the_way_up(whole_archive):
    assert answer("17", "13") == answer("13", "17")
    assert answer("13", "13") == answer()


def test_what_one_machine_measured_over_several_versions_is_an_answer(
    archive_to_14, finished_campaign
):
    found = answer("16", "18")
    (pair,) = line().pairs[-1:]

    assert found.is_known
    assert found.whole.best.found == pair.comparison
    assert found.sentence.startswith("PostgreSQL 18 is ")
    assert (found.low, found.high) == (pair.comparison.low, pair.comparison.high)
    # From an older version on it is no answer, and is said.
    wider = answer("15", "18")
    assert not wider.is_known
    assert any(text.endswith(f": {found.sentence}") for text in wider.details)


def test_a_machine_that_measured_all_steps_answers_over_them(ready_server):
    versions = ["15.18", "16.14", "18.4"]
    campaign = factories.campaign(
        "three", factors={"version": versions, "clients": [1, 4]}, on=ready_server
    )
    factories.finish_all(campaign, gain={"16.14": 1.1, "18.4": 1.32})

    found = answer("15", "18")

    assert found.whole.state == "decided"
    assert found.whole.best.found.verdict == "faster"
    assert found.whole.best.found.ratio == pytest.approx(1.32, rel=0.01)
    assert found.low < 1.32 < found.high
    assert found.whole.best.campaign == campaign


def test_page_first_page_and_api_say_the_same(client, whole_archive, finished_campaign):
    CacheVersion.objects.all().delete()
    found = answer()
    told = client.get("/api/v1/versions/").json()

    def title(address):
        page = client.get(address).content.decode()
        return unescape(re.search("<h1>(.*?)</h1>", page, re.DOTALL).group(1).strip())

    assert found.sentence == told["answer"]["sentence"]
    assert found.sentence == title("/versions/")
    assert found.sentence == title("/")
    assert told["answer"]["low"] == found.low
    assert told["answer"]["exit_code"] == found.exit_code


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("head", version_line.MAJORS[1:])
@pytest.mark.parametrize("theme", list(version_answers.LOADS))
def test_every_choice_has_a_sentence_in_both_languages(
    client, whole_archive, finished_campaign, theme, head, language
):
    address = f"/api/v1/versions/?theme={theme}&to={head}"
    with translation.override(language):
        for base in version_line.MAJORS[: version_line.MAJORS.index(head)]:
            told = client.get(
                f"{address}&from={base}", headers={"accept-language": language}
            )
            assert told.status_code == 200
            body = told.json()
            assert (body["base"], body["head"]) == (base, head)
            sentence = body["answer"]["sentence"]
            assert sentence
            if language == "en":
                is_known = body["answer"]["short"] != "not measured"
                is_known |= any(step["state"] != "unknown" for step in body["steps"])
                assert sentence.startswith("Nobody has measured") != is_known


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("theme=select-only", "theme"),
        ("from=8.4", "from"),
        ("to=19", "to"),
        ("from=17&to=13", "to"),
        ("clients=0", "clients"),
        ("clients=many", "clients"),
    ],
)
def test_a_strange_question_is_refused_with_what_is_known(
    client, whole_archive, query, field
):
    answer = client.get(f"/api/v1/versions/?{query}")

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == f"?{field}"


@pytest.mark.parametrize("theme", [version_line.READ, version_line.UPDATE])
def test_a_chip_of_several_tables_opens_all_of_them(client, whole_archive, theme):
    """Whatever a chip prints, the page behind it has the tables that it is made of."""
    page = client.get(f"/versions/?theme={theme}").content.decode()
    found = version_answers.answer(
        version_line.read(version_line.used(theme), clients=None), theme
    )
    ranges = [step for step in found.every_step if step.printed]
    assert ranges
    for step in ranges:
        href = (
            f"/versions/?from={step.base}&amp;to={step.head}&amp;theme={theme}#answer"
        )
        assert href in page, step.short
        opened = client.get(unescape(href)).content.decode()
        for table in step.printed:
            assert opened.count(f"/campaigns/{table.campaign.slug}/") > 0
            assert table.basis in unescape(opened)


def test_a_step_in_words_says_what_it_rests_on(whole_archive):
    read = line()
    bases = {
        evidence.basis
        for step in version_answers.steps(read)
        for evidence in step.evidence
    }
    told = version_answers.sentences(read.pairs)
    assert told
    assert all(any(text.startswith(f"{basis}: ") for basis in bases) for text in told)


@pytest.mark.parametrize(
    ("asked", "answered", "said"),
    [
        ("from=13&to=17", "From 13 to 17", ""),
        (
            "from=17&to=13",
            "From 13 to 17",
            "17 is newer than 13, so this is the way up",
        ),
        ("from=13&to=13", "From 17 to 18", "Choose an older and a newer version"),
        ("from=13", "From 17 to 18", "Choose an older and a newer version"),
        ("", "From 17 to 18", ""),
    ],
)
def test_a_page_that_answers_something_else_says_so(
    client, whole_archive, asked, answered, said
):
    page = unescape(client.get(f"/versions/?{asked}").content.decode())
    assert answered in page
    if said:
        assert said in page
    else:
        assert "Choose an older" not in page
        assert "is newer than" not in page


def test_a_table_with_repeats_that_decides_nothing_is_not_said_to_print_no_spread(
    whole_archive,
):
    steps = [step for step in version_answers.steps(line()) if step.undecided]
    assert steps, "the archive has such steps"
    for step in steps:
        sentence = answer(step.base, step.head).sentence
        assert "nothing is tested" not in sentence
        if step.printed:
            assert "undecided" in sentence
            assert "undecided" in step.basis


def test_a_picture_is_told_by_what_its_publication_concludes(archive_to_14):
    line_of_updates = version_line.read(version_line.used(version_line.UPDATE))
    found = version_answers.answer(
        line_of_updates, version_line.UPDATE, base="9.6", head="10"
    )
    assert (
        "is printed as a picture: The highest TPS of 9.6 is far above" in found.sentence
    )
