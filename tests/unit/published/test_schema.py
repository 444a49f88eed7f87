"""Mistakes that the form of a data file cannot show: each is refused with file and line."""

import re
from pathlib import Path

import pytest

from runs.published import checks, reading, schema, words
from runs.published.errors import PublishedFileError
from runs.published.fields import parse, typed

SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"

# What tells the reader how to mend it.
REMEDY = re.compile(r"take one of|known are|needs a|[Nn]ame |[Ww]rite |[Gg]ive ")
# What is planted: (what the file says, what it says then, what the refusal says).
PLANTED = [
    ("2 | 2,000.00", "2 | 2,000.00 ms", "has the unit “ms”"),
    ("1,000.00 | 98.25 %", "1,000.00 | 98.25 s", "has the unit “s”"),
    ("shared_buffers: 20GB", "shared_bufers: 20GB", "does not have a setting shared_bufers"),
    ("autovacuum: off", "jit: off", "PostgreSQL 9.3 does not have a setting jit"),
    ("{ratio: tps,", "{ratio: tpz,", "names the metric tpz"),
    ("tps_ratio: {ratio", "tps_ration: {ratio", "names the metric tps_ration"),
    ('to: {version: "9.2"}', "to: {release: 9}", "names the factor release"),
    ("metric: tps, x: clients", "metric: tpz, x: clients", "“chart” names the metric tpz"),
    ("kind: lines", "kind: pie", "“chart” needs a kind"),
    ("series: version}", "serie: version}", "unknown field: serie"),
    ("series: version}", "ratio: {factor: version, base: 8}}", "“ratio” names version 8"),
    ('not_measured: ["0"]', 'not_measured: ["00"]', "“not_measured” names 00"),
    ("scenario: profile", "scenario: prophecy", "names the scenario prophecy"),
    ("label: ratio,", "label: ratio, same_as: {table: '9'},", "names the table 9"),
    ("statistic: median\n    parameters", "statistic: modus\n    parameters", "“modus”"),
    ("printed: 26%,", "printed: 26%, figures: ['7'],", "figures that the table lacks: 7"),
    ('figures: ["120.00 %"]', 'figures: ["120.10 %"]', "120.10 %, which table 1.1 does not print"),
    ('      table: "1.1"\n      figures', '      table: "7.7"\n      figures', "the table 7.7"),
    ("https://example.org/reports", "javascript:reports", "begins with https://"),
]


def refusal(path):
    try:
        document = reading.read(path)
        schema.check(document, schema.known([document]))
        checks.check(document.campaigns)
    except PublishedFileError as error:
        error.locate(path)
        return str(error)
    return ""


def test_each_planted_mistake_is_refused_with_file_line_and_remedy(tmp_path):
    path = tmp_path / SAMPLE.name
    missed = []
    for old, new, told in PLANTED:
        text = SAMPLE.read_text()
        assert old in text
        planted = text.replace(old, new, 1)
        path.write_text(planted)
        pairs = zip(text.splitlines(), planted.splitlines(), strict=True)
        line = next(at for at, (before, after) in enumerate(pairs, 1) if before != after)
        message = refusal(path)
        is_placed = message.startswith(f"{SAMPLE.name}:{line}: ")
        if not is_placed or told not in message or not REMEDY.search(message):
            missed.append((line, new, message))

    assert missed == []


def test_the_line_is_that_of_the_words(tmp_path):
    path = tmp_path / SAMPLE.name
    path.write_text(SAMPLE.read_text().replace("2 | 2,000.00", "2 | 2,000.00 ms"))

    line = next(
        number for number, text in enumerate(path.read_text().splitlines(), 1) if " ms" in text
    )
    assert refusal(path).startswith(f"{SAMPLE.name}:{line}: ")


def test_two_files_cannot_describe_one_metric_in_two_ways(tmp_path):
    other = tmp_path / "other-2020.yaml"
    text = SAMPLE.read_text().replace("harbour", "other")
    other.write_text(text.replace('cpu_idle: {unit: "%"', "cpu_idle: {unit: s"))

    documents = [reading.read(SAMPLE), reading.read(other)]
    with pytest.raises(PublishedFileError, match="cpu_idle has the unit “%”"):
        schema.known(documents)


def test_every_file_of_the_archive_agrees_with_the_rules():
    documents = [reading.read(path) for path in reading.files()]
    known = schema.known(documents)

    for document in documents:
        schema.check(document, known)


def test_no_repeat_is_guessed():
    guessed = [
        (path.stem, campaign.table, figure.text)
        for path in reading.files()
        for campaign in reading.read(path).campaigns
        for figure in schema.figures.figures(campaign)
        if campaign.repeats is None and figure.n is not None and figure.repeat is None
    ]
    assert guessed == []


def test_references_that_unfold_without_end_are_refused():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]

    with pytest.raises(PublishedFileError, match="beyond all measure"):
        parse("\n".join(levels))
    with pytest.raises(PublishedFileError):
        parse("a: &a [*a]")


def test_the_example_of_the_documentation_is_one_that_loads_and_says_what_the_archive_says(
    tmp_path,
):
    guide = Path(__file__).parents[3] / "docs/adding-a-source.md"
    file = tmp_path / "wg1-2013.yaml"
    file.write_text(guide.read_text().split("```yaml\n")[1].split("```\n")[0])
    document = reading.read(file)
    schema.check(document, schema.known([document, *others()]))
    (table,) = checks.check(document.campaigns)
    (path,) = [each for each in reading.files() if each.stem == "wg1-2013"]
    archived = reading.read(path).campaigns[0]

    assert [fault.kind for fault in table.faults] == ["text"]
    assert set(document.campaigns[0].grid) <= set(archived.grid)


def others():
    return [reading.read(path) for path in reading.files() if path.stem == "wg1-2021"]


def test_one_spelling_finds_the_other():
    same = [
        ("サーバー", "サーバ"),
        ("オーバーヘッド", "オーバヘッド"),
        ("ＰｏｓｔｇｒｅＳＱＬ 14", "PostgreSQL 14"),
        ("21,378.30", "21378.30"),
        ("TPS", "tps"),
        ("バージョン14", "version 14"),
        ("pg 9.6.3", "9.6"),
    ]

    assert [pair for pair in same if words.query(pair[0]) != words.query(pair[1])] == []


def test_a_version_is_looked_for_as_such():
    assert words.query("PostgreSQL 14") == "version14"
    assert words.query("PostgreSQL 9.6.24 checksums") == "version9p6 checksums"
    assert words.query("14 clients") == "14 clients"


def test_japanese_is_found_within_longer_words():
    text = words.tokens(["ページチェックサムの負荷"]).split()

    assert set(words.query("チェックサム").split()) <= set(text)
    assert not set(words.query("パーティション").split()) <= set(text)


def test_what_is_printed_stays_as_it_is():
    content = parse("{a: off, b: 0.50, c: 9.10, d: 2014-01-01, e: 10:30, f: 1_000}")

    assert list(content.values()) == ["off", "0.50", "9.10", "2014-01-01", "10:30", "1_000"]


def test_a_mapping_takes_over_another_one():
    content = parse("base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}")

    assert content["other"] == {"a": "1", "b": "3"}


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(PublishedFileError, match="line 3: “a” is given twice"):
        parse("x:\n  a: 1\n  a: 2")


def test_numbers_are_numbers_but_versions_are_names():
    content = parse("{version: 10, versions: ['9.6', '10'], scale: 1000, share: 0.5, log: true}")

    assert typed(content) == {
        "version": "10", "versions": ["9.6", "10"], "scale": 1000, "share": 0.5, "log": True,
    }  # fmt: skip
    assert typed("007") == "007"
    assert typed("null") is None
