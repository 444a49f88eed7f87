"""Published figures: numbers as printed, tables with their levels, what a schema cannot show."""

import re
from pathlib import Path

import pytest

from runs.published import (
    advice,
    derived_figures,
    figures,
    printing_errors,
    reading,
    schema,
    search_words,
)
from runs.published.campaign_reading import read_campaign
from runs.published.errors import PublishedFileError
from runs.published.fields import parse, typed
from runs.published.figures import figures as read_figures

# Numbers as publications print them.


@pytest.mark.parametrize(
    ("text", "value", "half_unit"),
    [
        ("403.38", 403.38, 0.005),
        ("98.25 %", 98.25, 0.005),
        ("8,150", 8150, 0.5),
        ("1,234,567.8", 1234567.8, 0.05),
        ("(1.44)", 1.44, 0.005),
        ("(2.04E-05)", 2.04e-05, 5e-08),
        ("▲92.3%", -92.3, 0.05),
        ("−3", -3, 0.5),
        ("614.2(*)", 614.2, 0.05),
        ("43.7% [1]", 43.7, 0.05),
        ("62.48[ms]", 62.48, 0.005),
        ("7/4 =1.75", 1.75, 0.005),
        ("13/9 ≃1.44", 1.44, 0.005),
        ("3台", 3, 0.5),
        ("0", 0, 0.5),
        ("5000", 5000, 0.5),
    ],
)
def test_a_printed_number_is_read_with_its_rounding(text, value, half_unit):
    found = figures.read(text)

    assert found.value == value
    assert found.half_unit == pytest.approx(half_unit, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"), [("15MB", 15), ("1.5GB", 1500), ("75 [GB]", 75000)]
)
def test_units_of_several_sizes_become_one(text, value):
    assert figures.read(text, {"MB": 1, "GB": 1000}).value == value


def test_the_rounding_grows_with_the_unit():
    assert figures.read("1.5GB", {"GB": 1000}).half_unit == 50


@pytest.mark.parametrize("text", ["", "fast", "276.6 ▲92.9%", "1 2"])
def test_what_is_not_one_number_is_refused(text):
    with pytest.raises(ValueError, match="is not one number"):
        figures.read(text)


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="The unit “TB” is not among MB"):
        figures.read("3TB", {"MB": 1})


@pytest.mark.parametrize(
    ("text", "empty"),
    [("", True), (" -- ", True), ("n/a", True), ("-", True), ("0", False)],
)
def test_dashes_are_no_figure(text, empty):
    assert figures.is_empty(text) is empty


def operand(text):
    return printing_errors.Operand(figures.read(text), text)


def ratio(value, base, form):
    return printing_errors.ratio(operand(value), operand(base), form)


@pytest.mark.parametrize(
    ("value", "base", "form", "printed", "computed", "differs"),
    [
        ("418.77", "403.38", "percent", "103.82 %", 103.815, False),
        ("418.77", "403.38", "percent", "103.83 %", 103.815, True),
        ("6236.96", "6509.86", "percent", "99.93 %", 95.808, True),
        ("0.07", "3657.71", "factor", "(2.04E-05)", 1.9138e-05, False),
        ("0.07", "3657.71", "factor", "(2.06E-05)", 1.9138e-05, True),
        ("0.00", "8119.80", "factor", "(0)", 0.0, False),
        ("2.7083", "10247", "inverse", "3783.6", 3783.554, False),
        ("7420.9", "6913.6", "inverse", "0.93164", 0.931639, False),
        ("296.4", "3869.2", "loss", "▲92.3%", -92.3395, False),
        ("3379.8", "15561.3", "loss", "▲78.23%", -78.2807, True),
        ("69.1", "100.0", "less", "31%", 30.9, False),
        ("437.2413", "437.2413", "percent", "100%", 100.0, False),
        ("253.9", "198.5", "factor", "(1.42)", 1.27909, True),
    ],
)
def test_a_ratio_differs_where_no_rounding_explains_it(
    value, base, form, printed, computed, differs
):
    found = ratio(value, base, form)

    assert found.value == pytest.approx(computed, rel=1e-4)
    assert found.differs(figures.read(printed)) is differs


def test_nothing_is_compared_with_what_may_be_zero():
    assert ratio("3", "0.00", "factor") is None


@pytest.mark.parametrize(
    ("repeats", "printed", "differs"),
    [
        (("210.5", "129.3", "198.5"), "198.5", False),
        (("210.5", "129.3", "198.5"), "199", False),
        (("210.5", "129.3", "198.5"), "210.5", True),
        (("10", "20"), "15", False),
    ],
)
def test_a_median_is_that_of_the_printed_repeats(repeats, printed, differs):
    found = printing_errors.median([operand(each) for each in repeats])

    assert found.differs(figures.read(printed)) is differs


@pytest.mark.parametrize(
    ("printed", "differs"), [("6873.62", False), ("6873.61", False), ("6873.59", True)]
)
def test_a_sum_may_be_off_by_the_rounding_of_all_its_parts(printed, differs):
    parts = ("3850.05", "3023.57")

    found = printing_errors.total([operand(each) for each in parts])

    assert found.differs(figures.read(printed)) is differs


@pytest.mark.parametrize(
    ("text", "differs"), [("9254.0", False), ("9254", False), ("9253", True)]
)
def test_the_same_figure_elsewhere_may_have_fewer_digits(text, differs):
    found = printing_errors.same(figures.read(text), text=text)

    assert found.differs(figures.read("9254.0")) is differs


# Figures of a table with their levels, and what follows from them.


PAIR = "{en: x, ja: x}"


def campaign(text, table="1"):
    head = f"slug: c-{table}\ntitle: {PAIR}\nscenario: s\ntable: '{table}'\n"
    return read_campaign(parse(head + text))


def of(text):
    return {figure.text: figure for figure in read_figures(campaign(text))}


def faults(*texts):
    campaigns = [campaign(text, str(place)) for place, text in enumerate(texts, 1)]
    tables = derived_figures.check(campaigns)
    return [
        (fault.kind, fault.printed, fault.recomputed) for fault in tables[-1].faults
    ]


TWO = """
levels: {version: "9.3", load: read}
columns:
  - {factor: clients}
  - {metric: tps}
  - {metric: tps, levels: {version: "9.2", load: null}}
rows: |
  8 | 10 | 11
  1,000 | 20 | n/a
"""


def test_a_figure_has_the_levels_of_table_row_and_column():
    found = of(TWO)

    assert dict(found["10"].levels) == {"version": "9.3", "load": "read", "clients": 8}
    assert dict(found["11"].levels) == {"version": "9.2", "clients": 8}
    assert "n/a" not in found


def test_a_word_may_stand_for_several_levels_or_for_a_metric():
    found = of("""
columns:
  - {factor: version, values: {"9.6": {version: "9.6", workers: 2}}}
  - {factor: metric, values: {速さ: tps}}
  - {}
rows: |
  9.6 | 速さ | 10
  10 | latency | 20
""")

    assert (dict(found["10"].levels), found["10"].metric) == (
        {"version": "9.6", "workers": 2},
        "tps",
    )
    assert (dict(found["20"].levels), found["20"].metric) == (
        {"version": "10"},
        "latency",
    )


def test_a_figure_belongs_to_the_machine_of_its_levels_or_column():
    found = of("""
nodes:
  - {role: client, software: c}
  - {role: database, levels: {version: "9.6"}, software: a}
  - {role: database, software: b}
columns:
  - {factor: version}
  - {metric: tps}
  - {metric: idle, node: client}
rows: |
  9.6 | 1 | 3
  10 | 2 |
""")

    assert {text: figure.node.software for text, figure in found.items()} == {
        "1": "a",
        "2": "b",
        "3": "c",
    }


def test_repeats_stand_for_one_run_each_and_the_others_for_all():
    found = of("""
repeats: 3
statistic: median
columns: [{metric: tps, repeat: 1}, {metric: tps}, {metric: idle, statistic: mean, n: 9}]
rows: "10 | 11 | 12"
""")

    told = {text: (each.repeat, each.statistic, each.n) for text, each in found.items()}
    assert told == {
        "10": (1, "single", 1),
        "11": (None, "median", 3),
        "12": (None, "mean", 9),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("columns: [{}]\nrows: '1'", "row 1: “1” has no metric"),
        ("columns: [{metric: tps, node: moon}]\nrows: '1'", "names the node “moon”"),
        (
            "columns: [{metric: tps}, {metric: tps}]\nrows: '1 | 2'",
            "as has “1” in row 1",
        ),
    ],
)
def test_what_cannot_be_told_is_a_fault(text, told):
    with pytest.raises(PublishedFileError, match=told):
        of(text)


DEVICES = """
columns: [{factor: device}, {metric: rate}]
rows: |
  hdd | 3850.05
  ssd | 3023.57
  both | %s
derived: {rate: {sum: rate, over: {device: [hdd, ssd]}}}
"""


@pytest.mark.parametrize(("total", "count"), [("6873.61", 0), ("6874.61", 1)])
def test_a_sum_is_checked_against_its_parts(total, count):
    assert len(faults(DEVICES % total)) == count


def test_only_the_sum_is_derived_and_not_its_parts():
    (table,) = derived_figures.check([campaign(DEVICES % "6873.61")])

    assert [each.kind for each in table.figures] == ["measured", "measured", "derived"]


BASE = """
columns: [{factor: version}, {factor: standbys}, {metric: tps}, {metric: share}]
rows: |
  10 |   | 200 | 100%%
  10 | 1 | 100 | %s
derived: {share: {ratio: tps, to: {standbys: null}, as: percent}}
"""


@pytest.mark.parametrize(("share", "count"), [("50%", 0), ("60%", 1)])
def test_a_null_in_a_rule_removes_the_level(share, count):
    assert len(faults(BASE % share)) == count


def test_the_same_figure_of_another_table_is_compared():
    again = """
levels: {version: "10"}
same_as: {table: "1", levels: {standbys: null}}
columns: [{metric: tps}]
rows: "%s"
"""
    assert faults(BASE % "50%", again % "200") == []
    assert faults(BASE % "50%", again % "210") == [("other_table", "210", "200")]


def test_a_row_that_repeats_another_one_is_found():
    table = """
columns: [{text: true}, {factor: row}, {metric: rate}, {metric: share}]
rows: |
  write | 1 | 5.0 | 1
  write | 2 | 5.0 | %s
"""
    assert faults(table % "1") == [("repeated_row", "write", "")]
    assert faults(table % "2") == []


def test_a_figure_that_was_not_measured_is_no_operand():
    table = """
not_measured: ["0"]
columns: [{factor: version}, {metric: tps}, {metric: share}]
rows: |
  9.6 | 0 |
  10 | 5 | 3
derived: {share: {ratio: tps, to: {version: "9.6"}}}
"""
    assert faults(table) == [("not_measured", "0", "")]


def test_a_reader_s_explanation_replaces_the_one_that_is_found():
    table = f"""
not_measured: ["0"]
columns: [{{metric: tps}}]
rows: "0"
discrepancies: [{{kind: not_measured, printed: "0 (*1)", explanation: {PAIR}}}]
"""
    assert faults(table) == [("not_measured", "0 (*1)", "")]


# Mistakes that the form of a data file cannot show: each is refused with file and line.


SAMPLE = Path(__file__).parents[1] / "samples/published/harbour-2020.yaml"

# What tells the reader how to mend it.
REMEDY = re.compile(r"take one of|known are|needs a|[Nn]ame |[Ww]rite |[Gg]ive ")
# What is planted: (what the file says, what it says then, what the refusal says).
PLANTED = [
    ("2 | 2,000.00", "2 | 2,000.00 ms", "has the unit “ms”"),
    ("1,000.00 | 98.25 %", "1,000.00 | 98.25 s", "has the unit “s”"),
    (
        "shared_buffers: 20GB",
        "shared_bufers: 20GB",
        "does not have a setting shared_bufers",
    ),
    ("autovacuum: off", "jit: off", "PostgreSQL 9.3 does not have a setting jit"),
    ("{ratio: tps,", "{ratio: tpz,", "names the metric tpz"),
    ("tps_ratio: {ratio", "tps_ration: {ratio", "names the metric tps_ration"),
    ('to: {version: "9.2"}', "to: {release: 9}", "names the factor release"),
    (
        "metric: tps, x: clients",
        "metric: tpz, x: clients",
        "“chart” names the metric tpz",
    ),
    ("kind: lines", "kind: pie", "“chart” needs a kind"),
    ("series: version}", "serie: version}", "unknown field: serie"),
    (
        "series: version}",
        "ratio: {factor: version, base: 8}}",
        "“ratio” names version 8",
    ),
    ('not_measured: ["0"]', 'not_measured: ["00"]', "“not_measured” names 00"),
    ("scenario: profile", "scenario: prophecy", "names the scenario prophecy"),
    ("label: ratio,", "label: ratio, same_as: {table: '9'},", "names the table 9"),
    (
        "statistic: median\n    parameters",
        "statistic: modus\n    parameters",
        "“modus”",
    ),
    (
        "printed: 26%,",
        "printed: 26%, figures: ['7'],",
        "figures that the table lacks: 7",
    ),
    (
        'figures: ["120.00 %"]',
        'figures: ["120.10 %"]',
        "120.10 %, which table 1.1 does not print",
    ),
    (
        '      table: "1.1"\n      figures',
        '      table: "7.7"\n      figures',
        "the table 7.7",
    ),
    ("https://example.org/reports", "javascript:reports", "begins with https://"),
]


# Nothing but what a file must have.
BARE = """source: {slug: bare-2020, title: {en: Bare thing, ja: 裸}, year: 2020}
campaigns:
  - slug: bare
    title: {en: Bare table, ja: 裸の表}
    scenario: profile
    table: "1"
    topology: {kind: single, name: {en: One machine, ja: 1台}}
    columns:
      - {factor: clients, label: {en: Clients, ja: クライアント}}
      - {label: TPS, metric: tps}
    rows: |
      1 | 10
"""


def refusal(path):
    try:
        document = reading.read(path)
        schema.check(document, schema.known([document]))
        derived_figures.check(document.campaigns)
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
        line = next(
            at for at, (before, after) in enumerate(pairs, 1) if before != after
        )
        message = refusal(path)
        is_placed = message.startswith(f"{SAMPLE.name}:{line}: ")
        if not is_placed or told not in message or not REMEDY.search(message):
            missed.append((line, new, message))

    assert missed == []


def test_all_campaigns_say_their_fault_at_once(tmp_path):
    path = tmp_path / SAMPLE.name
    text = SAMPLE.read_text().replace("scenario: profile", "scenario: prophecy")
    path.write_text(text.replace("metric: tps, x: clients", "metric: tpz, x: clients"))
    document = reading.read(path)

    told = [str(fault) for fault in schema.faults(document, schema.known([document]))]

    assert len(told) == 2
    assert "tpz" in told[0]
    assert "prophecy" in told[1]


def test_what_a_reader_would_miss_is_said_and_each_remedy_names_a_field(tmp_path):
    path = tmp_path / "bare-2020.yaml"
    path.write_text(BARE)
    told = [str(advised) for advised in advice.advice(reading.read(path))]

    assert len(told) == 12
    assert all(": " in text for text in told)
    (first, *_others) = reading.read(SAMPLE).campaigns
    of_first = [
        advised.text
        for advised in advice.advice(reading.read(SAMPLE))
        if advised.campaign == first.slug
    ]
    assert of_first == [
        "no way to repeat it: give “reproduce” with a scenario, or with “why_not”"
    ]


def test_the_line_is_that_of_the_words(tmp_path):
    path = tmp_path / SAMPLE.name
    path.write_text(SAMPLE.read_text().replace("2 | 2,000.00", "2 | 2,000.00 ms"))

    line = next(
        number
        for number, text in enumerate(path.read_text().splitlines(), 1)
        if " ms" in text
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
    guide = Path(__file__).parents[2] / "docs/adding-a-source.md"
    file = tmp_path / "wg1-2013.yaml"
    file.write_text(guide.read_text().split("```yaml\n")[1].split("```\n")[0])
    document = reading.read(file)
    schema.check(document, schema.known([document, *others()]))
    (table,) = derived_figures.check(document.campaigns)
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

    assert [
        pair
        for pair in same
        if search_words.query(pair[0]) != search_words.query(pair[1])
    ] == []


def test_a_version_is_looked_for_as_such():
    assert search_words.query("PostgreSQL 14") == "version14"
    assert search_words.query("PostgreSQL 9.6.24 checksums") == "version9p6 checksums"
    assert search_words.query("14 clients") == "14 clients"


def test_japanese_is_found_within_longer_words():
    text = search_words.tokens(["ページチェックサムの負荷"]).split()

    assert set(search_words.query("チェックサム").split()) <= set(text)
    assert not set(search_words.query("パーティション").split()) <= set(text)


def test_what_is_printed_stays_as_it_is():
    content = parse("{a: off, b: 0.50, c: 9.10, d: 2014-01-01, e: 10:30, f: 1_000}")

    assert list(content.values()) == [
        "off",
        "0.50",
        "9.10",
        "2014-01-01",
        "10:30",
        "1_000",
    ]


def test_a_mapping_takes_over_another_one():
    content = parse("base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}")

    assert content["other"] == {"a": "1", "b": "3"}


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(PublishedFileError, match="line 3: “a” is given twice"):
        parse("x:\n  a: 1\n  a: 2")


def test_numbers_are_numbers_but_versions_are_names():
    content = parse(
        "{version: 10, versions: ['9.6', '10'], scale: 1000, share: 0.5, log: true}"
    )

    assert typed(content) == {
        "version": "10",
        "versions": ["9.6", "10"],
        "scale": 1000,
        "share": 0.5,
        "log": True,
    }
    assert typed("007") == "007"
    assert typed("null") is None
