"""What is said about settings before a server sees them."""

import pytest

from runs.postgresql_settings.catalogue import MAJORS, UnknownVersion
from runs.postgresql_settings.validation import check, errors

GIGABYTE = 1024**3


def codes(settings, *majors, **options):
    return {
        (each.severity, each.code, each.name)
        for each in check(settings, majors, **options)
    }


def only(settings, *majors, **options):
    """The one finding about these settings."""
    (finding,) = check(settings, majors, **options)
    return finding


def english(finding):
    return f"{finding.message} {finding.remedy}" % finding.parameters


@pytest.mark.parametrize("major", MAJORS)
def test_the_built_in_configuration_has_no_error_in_any_version(major):
    from runs.configurations.services.configurations import FIXED_POINT

    assert errors(check(FIXED_POINT, [major], memory_bytes=64 * GIGABYTE)) == ()


@pytest.mark.parametrize(
    ("name", "value", "major", "code", "said"),
    [
        ("checkpoint_segments", "100", "9.5", "removed", "Use max_wal_size."),
        (
            "checkpoint_segments",
            "100",
            "9.5",
            "removed",
            "was removed after PostgreSQL 9.4",
        ),
        ("max_wal_size", "1GB", "9.4", "not_yet", "In 9.4 use checkpoint_segments."),
        ("jit", "off", "10", "not_yet", "exists from PostgreSQL 11 on"),
        ("old_snapshot_threshold", "1h", "17", "removed", "bound long transactions"),
        ("trigger_file", "/x", "12", "removed", "Use promote_trigger_file."),
        ("trigger_file", "/x", "16", "removed", "pg_promote()"),
        ("standby_mode", "on", "12", "removed", "standby.signal"),
        ("standby_mode", "on", "11", "recovery_conf", "recovery.conf"),
        (
            "shared_bufers",
            "1GB",
            "16",
            "unknown_setting",
            "Did you mean shared_buffers?",
        ),
        ("frobnicate", "1", "16", "unknown_setting", "spelling mistake"),
        ("a b", "1", "16", "invalid_name", "cannot be the name"),
        ("a.b.c", "1", "16", "invalid_name", "one dot"),
        ("role", "x", "16", "session_only", "belongs to a session"),
        ("block_size", "8192", "16", "preset", "built with that block size"),
        ("data_checksums", "on", "16", "preset", "--data-checksums"),
        ("server_version", "16", "16", "preset", "Leave it out"),
        ("shared_buffers", "1gb", "16", "wrong_unit", "B, kB, MB, GB, TB"),
        ("shared_buffers", "1kB", "16", "out_of_range", "from 128kB to 8TB"),
        ("checkpoint_timeout", "2h", "9.5", "out_of_range", "from 30s to 1h"),
        (
            "wal_level",
            "replica",
            "9.5",
            "invalid_choice",
            "minimal, archive, hot_standby, logical",
        ),
        ("log_destination", "stderr,jsonlog", "14", "invalid_choice", "stderr, csvlog"),
        (
            "synchronous_standby_names",
            "FIRST 1 (a)",
            "9.6",
            "syntax_too_new",
            "plain list",
        ),
        ("synchronous_standby_names", "2 (a, b)", "9.5", "syntax_too_new", "of 9.6"),
        ("cluster_name", "a\nb", "16", "not_one_line", "must be one line"),
    ],
)
def test_an_error_has_a_code_and_says_what_to_do(name, value, major, code, said):
    finding = only({name: value}, major)
    assert (finding.severity, finding.code, finding.majors) == ("error", code, (major,))
    assert said in english(finding)


@pytest.mark.parametrize(
    ("name", "value", "major"),
    [
        ("work_mem", "1GB", "9.2"),
        ("WORK_MEM", "1GB", "18"),
        ("pg_bigm.enable_recheck", "on", "10"),
        ("log_destination", "stderr, jsonlog", "15"),
        ("synchronous_standby_names", "a, b", "9.2"),
        ("synchronous_standby_names", "ANY 2 (a, b, c)", "10"),
        ("wal_level", "hot_standby", "18"),
        ("wal_compression", "pglz", "15"),
        ("port", "5432", "9.2"),
    ],
)
def test_what_the_server_takes_is_no_finding(name, value, major):
    assert check({name: value}, [major], for_run=False) == ()


def test_the_same_word_about_several_versions_is_said_once():
    (finding,) = errors(check({"checkpoint_segments": "100"}, ["18", "9.6", "9.4"]))
    assert finding.majors == ("9.6", "18")
    assert finding.parameters["major"] == "9.6, 18"


def test_errors_come_before_warnings():
    found = check({"fsync": "off", "nonsense": "1"}, ["16"])
    assert [each.severity for each in found] == ["error", "warning"]


def test_one_name_in_two_spellings_is_refused():
    assert ("error", "given_twice", "WORK_MEM") in codes(
        {"work_mem": "1MB", "WORK_MEM": "2MB"}, "16"
    )


def test_an_old_name_is_understood_and_its_value_checked():
    assert only({"sort_mem": "4096"}, "9.3").code == "old_name"
    assert ("error", "out_of_range", "work_mem") in codes({"sort_mem": "1"}, "16")


@pytest.mark.parametrize(
    ("value", "code"), [("off", "without_effect"), ("on", "removed")]
)
def test_a_removed_setting_with_its_harmless_value_is_only_a_warning(value, code):
    assert only({"default_with_oids": value}, "16").code == code


def test_a_setting_that_came_with_a_minor_release_is_a_warning():
    finding = only({"restrict_nonsystem_relation_kind": "view"}, "13")
    assert (finding.severity, finding.code) == ("warning", "minor_release")


@pytest.mark.parametrize(
    "name",
    [
        "port",
        "listen_addresses",
        "data_directory",
        "hba_file",
        "ident_file",
        "config_file",
        "external_pid_file",
        "unix_socket_directories",
        "unix_socket_permissions",
    ],
)
def test_what_benchlab_sets_itself_is_refused_for_runs(name):
    value = "x"
    if name == "port":
        value = "5432"
    elif name.endswith("permissions"):
        value = "0770"
    assert codes({name: value}, "16") == {("error", "set_by_benchlab", name)}


@pytest.mark.parametrize(
    ("given", "severity", "code"),
    [
        ({"archive_command": "cp %p /x"}, "error", "runs_command"),
        ({"log_directory": "/var/log"}, "error", "outside_cluster"),
        ({"log_directory": "../x"}, "error", "outside_cluster"),
        ({"log_filename": "../../x.log"}, "error", "outside_cluster"),
        ({"logging_collector": "on"}, "warning", "log_elsewhere"),
        ({"log_destination": "syslog"}, "warning", "log_elsewhere"),
        ({"ssl": "on"}, "error", "needs_certificate"),
    ],
)
def test_what_reaches_out_of_the_cluster_is_told(given, severity, code):
    finding = only(given, "16")
    assert (finding.severity, finding.code) == (severity, code)


@pytest.mark.parametrize(
    ("given", "major", "code"),
    [
        ({"max_connections": "3"}, "16", "too_few_connections"),
        (
            {"max_connections": "10", "max_wal_senders": "7"},
            "11",
            "too_few_connections",
        ),
        (
            {"max_connections": "10", "max_wal_senders": "10"},
            "9.6",
            "too_few_connections",
        ),
        (
            {"max_connections": "10", "reserved_connections": "7"},
            "16",
            "too_few_connections",
        ),
        ({"max_connections": "262143"}, "16", "too_many_processes"),
        ({"wal_level": "minimal"}, "10", "needs_wal"),
        ({"wal_level": "minimal", "archive_mode": "on"}, "9.2", "needs_wal"),
        ({"min_wal_size": "16MB"}, "16", "less_than_two_segments"),
        (
            {"log_statement_stats": "on", "log_parser_stats": "on"},
            "16",
            "contradiction",
        ),
    ],
)
def test_settings_that_keep_the_server_from_starting_are_errors(given, major, code):
    assert code in {each.code for each in errors(check(given, [major], for_run=False))}


@pytest.mark.parametrize(
    ("given", "major"),
    [
        ({"max_connections": "10", "max_wal_senders": "7"}, "12"),
        ({"max_connections": "10", "max_wal_senders": "7"}, "10"),
        ({"wal_level": "minimal"}, "9.6"),
        ({"wal_level": "minimal", "max_wal_senders": "0"}, "10"),
        ({"min_wal_size": "32MB"}, "16"),
    ],
)
def test_settings_that_start_together_are_no_finding(given, major):
    assert check(given, [major], for_run=False) == ()


def test_a_larger_wal_segment_needs_larger_sizes():
    found = check({}, ["16"], wal_segment_bytes=64 * 1024**2, for_run=False)
    assert [(each.code, each.name) for each in found] == [
        ("less_than_two_segments", "min_wal_size")
    ]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"max_parallel_workers_per_gather": "16"}, "bounded"),
        ({"min_wal_size": "2GB"}, "bounded"),
        ({"pg_stat_statements.max": "100"}, "not_loaded"),
    ],
)
def test_what_has_no_effect_is_a_warning(given, code):
    found = check(given, ["16"])
    assert {(each.severity, each.code) for each in found} == {("warning", code)}


@pytest.mark.parametrize(
    ("given", "severity", "code"),
    [
        ({"shared_buffers": "30GB"}, "error", "shared_buffers_too_large"),
        (
            {"shared_buffers": "8GB", "work_mem": "1GB", "max_connections": "500"},
            "warning",
            "work_mem_may_not_fit",
        ),
        ({"maintenance_work_mem": "16GB"}, "warning", "maintenance_may_not_fit"),
        ({"effective_cache_size": "64GB"}, "warning", "cache_too_large"),
    ],
)
def test_sums_that_exceed_the_memory_are_told(given, severity, code):
    finding = only(given, "14", memory_bytes=32 * GIGABYTE)
    assert (finding.severity, finding.code) == (severity, code)
    assert "32GB" in english(finding)


@pytest.mark.parametrize(
    "given",
    [
        {"maintenance_work_mem": "16GB", "autovacuum": "off"},
        {"maintenance_work_mem": "16GB", "autovacuum_work_mem": "1GB"},
        {"shared_buffers": "28GB"},
    ],
)
def test_sums_that_fit_are_not(given):
    assert check(given, ["14"], memory_bytes=32 * GIGABYTE, for_run=False) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fsync", "off"),
        ("full_page_writes", "no"),
        ("synchronous_commit", "off"),
        ("autovacuum", "off"),
        ("log_statement", "all"),
        ("log_min_duration_statement", "0"),
        ("debug_parallel_query", "regress"),
        ("enable_nestloop", "off"),
        ("trace_sort", "on"),
        ("zero_damaged_pages", "on"),
    ],
)
def test_what_makes_runs_incomparable_is_a_warning_with_the_reason(name, value):
    finding = only({name: value}, "16")
    assert (finding.severity, finding.code, finding.name) == (
        "warning",
        "not_comparable",
        name,
    )
    assert english(only({name: value}, "16"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fsync", "on"),
        ("autovacuum", "on"),
        ("log_min_duration_statement", "1s"),
        ("log_min_duration_statement", "-1"),
        ("synchronous_commit", "local"),
        ("enable_partitionwise_join", "off"),
    ],
)
def test_the_usual_values_are_not(name, value):
    assert check({name: value}, ["16"]) == ()


def test_a_default_that_differs_between_the_versions_is_told():
    found = {each.name: each for each in check({}, ["11", "12"])}
    assert english(found["jit"]).startswith(
        "The default of jit differs between the versions: off (11); on (12)."
    )
    assert "jit" not in {each.name for each in check({"jit": "off"}, ["11", "12"])}


def test_a_version_that_is_not_recorded_is_refused():
    with pytest.raises(UnknownVersion):
        check({}, ["8.4"])


def test_every_template_has_its_parameters():
    wrong = {
        "checkpoint_segments": "x",
        "max_wal_size": "1XB",
        "jit": "maybe",
        "wal_level": "minimal",
        "work_mem": "1PB",
        "block_size": "1",
        "shared_buffers": "100TB",
        "nonsense": "1",
        "sort_mem": "1",
        "port": "1",
        "fsync": "off",
        "log_destination": "x",
        "trigger_file": "x",
    }
    for finding in check(wrong, MAJORS, memory_bytes=GIGABYTE):
        assert "%(" not in english(finding)
