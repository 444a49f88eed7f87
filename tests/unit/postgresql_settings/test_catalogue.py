"""What the catalogue knows of each version, and how it got there."""

import csv

import pytest

from runs.postgresql_settings import catalogue, conf_file, record
from runs.postgresql_settings.catalogue import MAJORS, UnknownVersion, setting
from runs.postgresql_settings.completion import complete, versions


@pytest.mark.parametrize(
    ("major", "count"),
    [
        ("9.2", 224), ("9.3", 231), ("9.4", 240), ("9.5", 248), ("9.6", 262), ("10", 270),
        ("11", 291), ("12", 315), ("13", 330), ("14", 345), ("15", 353), ("16", 362),
        ("17", 378), ("18", 399), ("19", 418),
    ],
)  # fmt: skip
def test_each_version_has_as_many_settings_as_its_server_printed(major, count):
    assert len(catalogue.names(major)) == count


@pytest.mark.parametrize(
    ("name", "major", "kind", "unit", "minimum", "maximum", "boot"),
    [
        ("shared_buffers", "9.2", "integer", "8kB", 16, 1073741823, "1024"),
        ("max_wal_size", "9.6", "integer", "16MB", 2, 2147483647, "64"),
        ("max_wal_size", "10", "integer", "MB", 2, 2147483647, "1024"),
        ("checkpoint_completion_target", "14", "real", "", 0, 1, "0.9"),
        ("jit", "11", "bool", "", None, None, "off"),
        ("jit", "19", "bool", "", None, None, "off"),
        ("vacuum_cost_delay", "12", "real", "ms", 0, 100, "0"),
        ("DateStyle", "16", "string", "", None, None, "ISO, MDY"),
    ],
)
def test_a_setting_is_as_its_version_printed_it(name, major, kind, unit, minimum, maximum, boot):
    found = setting(name, major)
    assert (found.kind, found.unit, found.minimum, found.maximum, found.boot) == (
        kind, unit, minimum, maximum, boot,
    )  # fmt: skip


def test_an_enum_tells_its_words_and_one_of_them_may_be_empty():
    assert setting("ssl_max_protocol_version", "12").values[:2] == ("", "TLSv1")
    assert "read committed" in setting("default_transaction_isolation", "9.2").values


def test_names_are_found_in_any_case():
    assert setting("datestyle", "9.2").name == "DateStyle"
    assert catalogue.canonical("TIMEZONE") == "TimeZone"


def test_what_a_version_does_not_have_is_none():
    assert setting("checkpoint_segments", "9.5") is None
    assert setting("max_wal_size", "9.4") is None


def test_a_version_that_is_not_recorded_is_refused():
    with pytest.raises(UnknownVersion, match=r"9\.1"):
        setting("work_mem", "9.1")


def test_a_setting_that_went_does_not_come_back():
    for name in catalogue.all_names():
        has = [MAJORS.index(major) for major in catalogue.existence(name)]
        assert has == list(range(has[0], has[-1] + 1)), name


def test_the_file_is_in_the_form_that_recording_writes(tmp_path):
    again = tmp_path / "settings.csv"
    record.write(record.stretches(record.by_version(catalogue.read())), again)
    assert again.read_text() == catalogue.FILE.read_text()


def test_recording_a_version_that_changes_nothing_only_lengthens_the_rows():
    known = record.by_version(catalogue.read())
    del known["19"]
    rows = len(record.stretches(known))
    known["19"] = dict(known["18"])
    assert len(record.stretches(known)) == rows


def test_recording_reads_what_a_server_prints(tmp_path, monkeypatch):
    dump, file = tmp_path / "9.2.csv", tmp_path / "settings.csv"
    with dump.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(record.COLUMNS.values())
        writer.writerow(
            ["work_mem", "integer", "kB", "64", "2147483647", "", "1024", "user", "M", "D"]
        )
        writer.writerow(["server_version", "string", "", "", "", "", "9.2.24", "internal", "P", ""])
    monkeypatch.setattr(record, "FILE", file)
    monkeypatch.setattr(record.write, "__defaults__", (file,))
    record.main(["9.2", str(dump)])
    work_mem, version = sorted(catalogue.read(file), key=lambda row: row.facts["type"])
    assert (work_mem.first, work_mem.last, work_mem.facts["default"]) == ("9.2", "9.2", "1024")
    assert version.facts["default"] == ""


def test_completion_offers_what_begins_with_the_letters_before_what_contains_them():
    names = [each.name for each in complete("wal_", ["9.6"])]
    assert names[0] == "wal_buffers"
    assert names.index("wal_level") < names.index("max_wal_senders")


def test_completion_tells_which_of_the_versions_lack_a_name():
    offered = {each.name: each for each in complete("wal_keep", ["9.4", "18"])}
    assert offered["wal_keep_segments"].missing == ("18",)
    assert offered["wal_keep_size"].missing == ("9.4",)
    assert offered["wal_keep_segments"].versions == "9.2-12"


def test_completion_tells_default_and_range_with_units():
    (offer,) = complete("shared_buffers", ["18"])
    assert (offer.default, offer.allowed) == ("128MB", "128kB … 8TB")


def test_completion_leaves_out_what_cannot_be_set():
    assert complete("block_size", ["18"]) == ()


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("work_mem", "9.2-"),
        ("checkpoint_segments", "9.2-9.4"),
        ("nonsense", ""),
        ("io_workers", "18"),
    ],
)
def test_the_versions_of_a_name_are_told_as_a_span(name, span):
    assert versions(name) == span


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("shared_buffers = 200GB ", {"shared_buffers": "200GB"}),
        ("shared_buffers 200GB # a tenth of the memory", {"shared_buffers": "200GB"}),
        ("shared_buffers=200GB", {"shared_buffers": "200GB"}),
        ("\tautovacuum\t= off", {"autovacuum": "off"}),
        ("datestyle = 'iso, mdy'", {"DateStyle": "iso, mdy"}),
        ("log_line_prefix = '%t [%p]# '", {"log_line_prefix": "%t [%p]# "}),
        ("a.b = 'it''s \\'so\\''", {"a.b": "it's 'so'"}),
        ("a.b = 'tab\\tback\\\\slash\\101'", {"a.b": "tab\tback\\slashA"}),
        ("checkpoint_completion_target = 0.9", {"checkpoint_completion_target": "0.9"}),
        ("autovacuum_work_mem = -1", {"autovacuum_work_mem": "-1"}),
        ("work_mem = 1.5MB", {"work_mem": "1.5MB"}),
        ("log_timezone = Asia/Tokyo", {"log_timezone": "Asia/Tokyo"}),
        ("pg_stat_statements.max=10", {"pg_stat_statements.max": "10"}),
        ("# shared_buffers = 1GB", {}),
        ("   ", {}),
        ("listen_addresses = ''", {"listen_addresses": ""}),
    ],
)
def test_a_line_is_read_as_postgresql_reads_it(line, expected):
    found = conf_file.read(line)
    assert (dict(found.settings), found.faults) == (expected, ())


@pytest.mark.parametrize(
    "line",
    [
        "work_mem",
        "work_mem =",
        "work_mem = 1 GB",
        "work_mem == 1GB",
        "log_line_prefix = %t",
        "log_line_prefix = 'open",
        "= 1",
        "1 = 1",
        "'work_mem' = 1GB",
        "a.b.c = 1",
        "listen_addresses = *",
    ],
)
def test_what_is_no_setting_is_told_with_its_line(line):
    found = conf_file.read(f"\n{line}\nfsync = on\n")
    (fault,) = found.faults
    assert (fault.line, fault.code, dict(found.settings)) == (2, "syntax_error", {"fsync": "on"})
    assert fault.english.startswith("Line 2 ")


def test_the_last_line_of_a_name_wins_and_its_line_is_known():
    found = conf_file.read("work_mem = 1MB\r\nWORK_MEM = 2MB\r\n")
    assert found.settings == {"work_mem": "2MB"}
    assert found.line("Work_Mem") == 2
    assert found.line("fsync") is None
    assert [entry.value for entry in found.entries] == ["1MB", "2MB"]


@pytest.mark.parametrize("word", ["include", "include_dir", "include_if_exists", "INCLUDE"])
def test_an_include_is_told_and_not_followed(word):
    (fault,) = conf_file.read(f"{word} '/etc/passwd'").faults
    assert fault.code == "include_not_followed"


def test_what_is_written_is_read_again():
    settings = {
        "shared_buffers": "200GB",
        "fsync": "off",
        "log_line_prefix": "%t 'x' \\ [%p] ",
        "search_path": '"$user", public',
        "synchronous_standby_names": "",
        "auto_explain.log_min_duration": "1s",
        "checkpoint_completion_target": "0.9",
        "wal_level": "minimal",
        "DateStyle": "iso, mdy",
        "cluster_name": "two\nlines",
    }
    assert conf_file.read(conf_file.write(settings, "9.5")).settings == settings


def test_settings_are_written_by_the_manuals_chapters():
    text = conf_file.write({"work_mem": "1GB", "x.y": "1", "fsync": "off"}, "16", header=["Mine"])
    assert text == (
        "# Mine\n# PostgreSQL 16\n"
        "\n# Resource Usage / Memory\nwork_mem = 1GB\n"
        "\n# Write-Ahead Log / Settings\nfsync = off\n"
        "\n# Extensions and others\nx.y = '1'\n"
    )


def test_a_title_of_two_lines_cannot_become_a_setting():
    text = conf_file.write({}, "16", header=["Mine\narchive_command = 'rm -rf /'"])
    assert conf_file.read(text).settings == {}


def test_a_null_byte_is_refused():
    with pytest.raises(ValueError, match="null byte"):
        conf_file.write({"cluster_name": "a\0b"}, "16")
