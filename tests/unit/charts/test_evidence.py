"""The picture of a topic's evidence: rows of one table stand below its name."""

import re

from runs.charts import looks, svg
from runs.charts.evidence import Ratio, Row, Words, evidence

WORDS = Words("Ratio", "printed", "measured", "95 %")
TABLES = (
    "2025 Writing with PostgreSQL 12 to 18, cached, 40 clients",
    "2025 Reading with PostgreSQL 12 to 18, cached, 40 clients",
)
ROWS = [
    Row(
        f"{head} : 13.23",
        (Ratio(1.1, "insert"), Ratio(0.9, "scan")),
        "/t/",
        True,
        table,
    )
    for table in TABLES
    for head in ("14.20", "17.7")
]
ALONE = Row("2013 Everything on SSD", (Ratio(2.0, "updates"),), "/s/", True)


def texts(look):
    drawn = svg.render(evidence([*ROWS, ALONE], WORDS), title="t", look=look)
    return re.findall(r">([^<>]+)</text>", drawn)


def test_a_table_is_named_once_above_its_rows():
    drawn = texts(looks.PAGE)
    assert [text for text in drawn if text in TABLES] == list(TABLES)
    assert drawn.count("17.7 : 13.23") == 2
    assert ALONE.label in drawn


def test_on_a_phone_no_two_tables_have_one_name_and_no_pair_is_cut():
    drawn = texts(looks.PHONE)
    names = [text for text in drawn if text.startswith("2025")]
    assert len(names) == len(set(names)) == 2
    assert drawn.count("17.7 : 13.23") == 2


def test_each_point_says_of_which_table_it_is():
    (trace,) = evidence([*ROWS, ALONE], WORDS)["data"]
    assert f"17.7 : 13.23 · {TABLES[1]} · scan" in trace["text"]
    assert len(set(trace["y"])) == len(ROWS) + 1
