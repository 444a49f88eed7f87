"""Figures of a table with their levels, and what follows from them."""

import pytest

from runs.published import checks
from runs.published.campaign_reading import read_campaign
from runs.published.errors import PublishedFileError
from runs.published.fields import parse
from runs.published.figures import figures

PAIR = "{en: x, ja: x}"


def campaign(text, table="1"):
    head = f"slug: c-{table}\ntitle: {PAIR}\nscenario: s\ntable: '{table}'\n"
    return read_campaign(parse(head + text))


def of(text):
    return {figure.text: figure for figure in figures(campaign(text))}


def faults(*texts):
    tables = checks.check([campaign(text, str(place)) for place, text in enumerate(texts, 1)])
    return [(fault.kind, fault.printed, fault.recomputed) for fault in tables[-1].faults]


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
    assert (dict(found["20"].levels), found["20"].metric) == ({"version": "10"}, "latency")


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
        "1": "a", "2": "b", "3": "c",
    }  # fmt: skip


def test_repeats_stand_for_one_run_each_and_the_others_for_all():
    found = of("""
repeats: 3
statistic: median
columns: [{metric: tps, repeat: 1}, {metric: tps}, {metric: idle, statistic: mean, n: 9}]
rows: "10 | 11 | 12"
""")

    told = {text: (each.repeat, each.statistic, each.n) for text, each in found.items()}
    assert told == {"10": (1, "single", 1), "11": (None, "median", 3), "12": (None, "mean", 9)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("columns: [{}]\nrows: '1'", "row 1: “1” has no metric"),
        ("columns: [{metric: tps, node: moon}]\nrows: '1'", "names the node “moon”"),
        ("columns: [{metric: tps}, {metric: tps}]\nrows: '1 | 2'", "as has “1” in row 1"),
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
    (table,) = checks.check([campaign(DEVICES % "6873.61")])

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
