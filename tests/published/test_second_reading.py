"""A file held against the text of its source: a planted slip of each kind is seen."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runs.published import reading, second_reading

SAMPLE = Path(__file__).parents[1] / "samples/published/harbour-2020.yaml"
TEXT = """
Measured with 9.2.4 and 9.3.0 on Quay Linux 7.1, in memory: a Zen 9 with 64GB and NVMe.

shared_buffers = 20GB   # a quarter
autovacuum=off

clients | TPS | idle | TPS | ratio
1\t1,000.00\t98.25 %\t1050.00\t105.00 %
2,2,000.00,90.00,2500.00,120.00
4 0 4000.00
"""


@pytest.fixture
def document():
    document = reading.read(SAMPLE)
    (first, *_others) = document.campaigns
    # Of the sample the first table alone, whose text this is.
    return document.__class__(**{**vars(document), "campaigns": (first,)})


def test_a_text_with_all_of_it_leaves_nothing_to_look_at(document):
    assert second_reading.differences(document, TEXT) == []


@pytest.mark.parametrize(
    ("printed", "otherwise", "place", "words"),
    [
        ("autovacuum=off", "autovacuum=off\nwal_level = minimal", "sets", "wal_level"),
        ("# a", "\n | max_wal_size | 4GB", "sets", "max_wal_size"),
        (
            "=off",
            "=off\npg_stat_statements.track_planning=on",
            "sets",
            "pg_stat_statements.track_planning",
        ),
        ("Zen 9", "Zen 8 of 2", "crane", "Zen 9"),
        ("64GB", "32GB", "crane", "64"),
        ("NVMe", "SATA", "storage", "NVMe"),
        ("7.1", "7.2", "quay", "7.1"),
        ("20GB", "30GB", "shared_buffers", "20GB"),
        ("9.2.4", "9.2.3", "version", "9.2.4"),
        ("98.25", "98.52", "harbour-reading", "98.25 %"),
        ("4000.00", "4000.0", "harbour-reading", "4000.00"),
        ("120.00", "12.00", "harbour-reading", "120.00 %"),
    ],
)
def test_what_one_has_and_the_other_has_not_is_said(
    document, printed, otherwise, place, words
):
    assert printed in TEXT

    differences = second_reading.differences(
        document, TEXT.replace(printed, otherwise, 1)
    )

    assert len(differences) == 1
    assert place in differences[0]
    assert words in differences[0]


def test_a_word_of_running_text_is_no_setting(document):
    text = TEXT + "\nwal_level was at its default, and port a word: work_mem: as is.\n"

    assert second_reading.differences(document, text) == []


def test_a_contributor_holds_one_file_against_its_source(tmp_path, capsys):
    source = tmp_path / "print.txt"
    source.write_text(TEXT.replace("98.25", "98.52"))

    call_command("load_published", "--check", str(SAMPLE), "--against", str(source))

    told = capsys.readouterr().out
    assert "against the source: harbour-reading: the source has no 98.25 %" in told
    assert "to look at again in the source." in told
    for arguments in ([], [str(SAMPLE), str(SAMPLE)]):
        with pytest.raises(CommandError, match="needs --check and the one file"):
            call_command(
                "load_published", "--check", *arguments, "--against", str(source)
            )
    with pytest.raises(CommandError, match=r"none\.txt"):
        call_command("load_published", "--check", str(SAMPLE), "--against", "none.txt")
