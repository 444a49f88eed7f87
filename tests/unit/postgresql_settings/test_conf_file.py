"""Reading and writing postgresql.conf."""

import pytest

from runs.postgresql_settings import conf_file


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
