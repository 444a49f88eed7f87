"""What the check accepts, real servers take; what it refuses, they refuse."""

import os

import pytest

from runs.postgresql_settings import values
from runs.postgresql_settings.catalogue import MAJORS, catalogue, position, setting
from runs.postgresql_settings.conf_file import read
from runs.postgresql_settings.conf_text import quoted, write
from runs.postgresql_settings.translation import translate
from runs.postgresql_settings.validation import check, errors
from tests.unit.postgresql_settings.servers import (
    Server,
    asked_often,
    installed,
    started_often,
)

SERVERS = installed()
EACH_SERVER = pytest.mark.parametrize("server", asked_often(), ids=str)
SOME_START = pytest.mark.parametrize("server", started_often(), ids=str)


def refused(settings, server):
    return errors(check(settings, [server.major], for_run=False))


def disagreements(cases, expected, answers):
    """Each case about which the server (True: taken) says something else, with its words."""
    return [
        f"{case!r}: server {taken}, expected {good}: {said}"
        for case, good, (taken, said) in zip(cases, expected, answers, strict=True)
        if taken != good
    ]


def test_both_embedded_versions_are_asked():
    assert {"16", "18"} <= {server.major for server in SERVERS}


# Judged by each version for itself: the check has to agree with whatever the server says.
LINES = [
    ("primary_slot_name", "a" * 63),
    ("primary_slot_name", "a" * 64),
    ("primary_slot_name", "A"),
    ("recovery_target_name", "x" * 63),
    ("recovery_target_name", "x" * 64),
    ("recovery_target_time", "2020-13-45"),
    ("recovery_target_time", "2020-12-31 10:00:00+00"),
    ("recovery_target_time", "yesterday"),
    ("work_mem", "1GB"),
    ("work_mem", "4mb"),
    ("work_mem", "1TB"),
    ("work_mem", "2PB"),
    ("work_mem", "1.5MB"),
    ("work_mem", "65536B"),
    ("work_mem", "010MB"),
    ("work_mem", "099"),
    ("work_mem", "1e400"),
    ("work_mem", "1e308TB"),
    ("work_mem", "9" * 5000),
    ("work_mem", "٣٣٣kB"),
    ("checkpoint_timeout", "-.5"),
    ("tcp_keepalives_idle", "-.5"),
    ("random_page_cost", "1e400"),
    ("work_mem", "0x400"),
    ("work_mem", "1e3"),
    ("work_mem", " 8 MB "),
    ("work_mem", ""),
    ("work_mem", "-1"),
    ("work_mem", "63"),
    ("work_mem", "10s"),
    ("sort_mem", "4096"),
    ("shared_buffers", "8"),
    ("shared_buffers", "200GB"),
    ("shared_buffers", "127kB"),
    ("max_wal_size", "160GB"),
    ("max_wal_size", "1MB"),
    ("checkpoint_segments", "3"),
    ("checkpoint_timeout", "2h"),
    ("checkpoint_timeout", "29s"),
    ("checkpoint_timeout", "0.5h"),
    ("checkpoint_timeout", "60000000us"),
    ("checkpoint_completion_target", "0.9"),
    ("checkpoint_completion_target", "1.1"),
    ("checkpoint_completion_target", ".5"),
    ("vacuum_cost_delay", "0.5"),
    ("vacuum_cost_delay", "500us"),
    ("seq_page_cost", "0x10"),
    ("random_page_cost", "1ms"),
    ("fsync", "o"),
    ("fsync", "of"),
    ("fsync", "T"),
    ("fsync", "maybe"),
    ("fsync", ""),
    ("wal_level", "archive"),
    ("wal_level", "replica"),
    ("wal_level", "LOGICAL"),
    ("wal_level", "bogus"),
    ("synchronous_commit", "remote_apply"),
    ("synchronous_commit", "1"),
    ("password_encryption", "on"),
    ("password_encryption", "scram-sha-256"),
    ("wal_compression", "pglz"),
    ("wal_compression", "yes"),
    ("huge_pages", "try"),
    ("client_min_messages", "panic"),
    ("log_min_messages", "debug"),
    ("jit", "off"),
    ("io_method", "worker"),
    ("io_method", "bogus"),
    ("wal_keep_segments", "32"),
    ("wal_keep_size", "512MB"),
    ("force_parallel_mode", "on"),
    ("debug_parallel_query", "on"),
    ("ssl_ecdh_curve", "prime256v1"),
    ("ssl_groups", "prime256v1"),
    ("stats_temp_directory", "x"),
    ("old_snapshot_threshold", "1h"),
    ("vacuum_defer_cleanup_age", "1"),
    ("sql_inheritance", "on"),
    ("replacement_sort_tuples", "1000"),
    ("operator_precedence_warning", "on"),
    ("vacuum_cleanup_index_scale_factor", "0.1"),
    ("default_with_oids", "off"),
    ("default_with_oids", "on"),
    ("ssl_renegotiation_limit", "0"),
    ("primary_conninfo", "host=a"),
    ("standby_mode", "on"),
    ("recovery_target_action", "pause"),
    ("block_size", "8192"),
    ("server_version", "1"),
    ("data_checksums", "on"),
    ("is_superuser", "on"),
    ("frobnicate", "1"),
    ("pg_bigm.enable_recheck", "on"),
    ("WORK_MEM", "1MB"),
    ("log_destination", "stderr,jsonlog"),
    ("log_destination", "paper"),
    ("synchronous_standby_names", "a, b"),
    ("synchronous_standby_names", "2 (a, b)"),
    ("synchronous_standby_names", "ANY 1 (a, b)"),
    ("vacuum_buffer_usage_limit", "64kB"),
    ("vacuum_buffer_usage_limit", "0"),
    ("transaction_buffers", "17"),
    ("transaction_buffers", "32"),
    ("max_connections", "0"),
    ("autovacuum_work_mem", "-1"),
    ("effective_io_concurrency", "16"),
]


@EACH_SERVER
def test_the_check_agrees_with_the_server_about_each_line(server: Server):
    expected = [not refused({name: value}, server) for name, value in LINES]
    answers = server.takes_each(LINES, expected=expected)
    assert disagreements(LINES, expected, answers) == []


def test_a_wrong_expectation_is_found_among_right_ones():
    server = SERVERS[-1]
    lines = [
        ("work_mem", "1MB"),
        ("work_mem", "maybe"),
        ("fsync", "on"),
        ("fsync", "of"),
    ]
    for expected in ([True] * 4, [False] * 4):
        assert [
            taken for taken, _said in server.takes_each(lines, expected=expected)
        ] == [
            True,
            False,
            True,
            True,
        ]


FORMS = [
    "work_mem = 4MB",
    "work_mem 4MB",
    "work_mem=4MB # so",
    "work_mem = '4MB'",
    "work_mem = 4 MB",
    "work_mem",
    "work_mem =",
    "work_mem == 4MB",
    "log_line_prefix = %t",
    "log_line_prefix = '%t",
    "listen_addresses = *",
    "log_timezone = Asia/Tokyo",
    "a.b = 'it''s \\'so\\''",
    "a.b.c = 1",
    "1 = 1",
    "'work_mem' = 4MB",
    "= 1",
    "search_path = a, b",
    "checkpoint_completion_target = .5",
    "\tfsync\t=\toff\t",
    "autovacuum_work_mem = -1",
    "datestyle = 'iso, mdy'",
    "work_mem = 4MB;",
]


def form_for(line, server):
    if server.major == "9.3":
        line = line.replace("autovacuum_work_mem", "log_temp_files")
    return line.replace(
        "log_timezone", "cluster.name"
    )  # a build may have no time zones


@EACH_SERVER
def test_a_file_is_read_as_the_server_reads_it(server: Server):
    lines = [form_for(line, server) for line in FORMS]
    expected = [not read(line).faults for line in lines]
    answers = server.reads_each([line + "\n" for line in lines])
    assert disagreements(lines, expected, answers) == []


@EACH_SERVER
def test_every_default_of_the_catalogue_is_taken_as_we_spell_it(server: Server):
    backported = {"data_sync_retry", "file_extend_method", "output_plugin_libraries"}
    backported |= {"allow_in_place_tablespaces", "restrict_nonsystem_relation_kind"}
    lines = [
        f"{found.name} = {quoted(values.default(found))}"
        for found in catalogue(server.major).values()
        if found.is_number and not found.is_preset and found.name not in backported
    ]
    taken, said = server.reads("\n".join([*lines, ""]))
    assert taken, said


REPORTED = {  # the conditions of the WG1 report of 2013, for 9.3
    "max_connections": "510",
    "shared_buffers": "32MB",
    "work_mem": "1GB",
    "maintenance_work_mem": "20GB",
    "checkpoint_segments": "300",
    "checkpoint_timeout": "60min",
    "checkpoint_completion_target": "0.9",
    "wal_level": "hot_standby",
    "wal_keep_segments": "32",
    "autovacuum": "off",
    "effective_io_concurrency": "2",
    "synchronous_commit": "on",
    "max_wal_senders": "3",
    "replication_timeout": "1min",
    "log_line_prefix": "%t [%p-%l] ",
    "sql_inheritance": "on",
    "default_statistics_target": "100",
    "vacuum_cost_delay": "20ms",
}


@SOME_START
def test_a_server_starts_with_settings_translated_from_9_2(server: Server):
    done = translate(REPORTED, "9.2", server.major)
    assert errors(check(done.settings, [server.major])) == ()
    started, log = server.starts(done.settings)
    assert started, log


@SOME_START
def test_a_server_starts_with_the_old_defaults_that_settings_depend_on(server: Server):
    written = {
        "wal_level": "minimal",
        "max_worker_processes": "40",
        "max_replication_slots": "40",
        "autovacuum_max_workers": "20",
        "autovacuum_vacuum_cost_limit": "300",
    }
    translated = translate(written, "9.6", server.major).settings
    if position(server.major) <= position("9.6"):
        assert not translated.keys() - written.keys()
        return
    assert translated["max_wal_senders"] == "0"
    started, log = server.starts(translated)
    assert started, log


@EACH_SERVER
def test_a_server_takes_what_comes_from_the_newest_version(server: Server):
    newest = {
        found.name: values.default(found)
        for found in catalogue(MAJORS[-1]).values()
        if found.is_number and not found.is_preset
    }
    done = translate(newest, MAJORS[-1], server.major)
    unsure = {"data_sync_retry", "file_extend_method"}
    lines = [f"{k} = {quoted(v)}" for k, v in done.settings.items() if k not in unsure]
    taken, said = server.reads("\n".join([*lines, ""]))
    assert taken, said


TOGETHER = [
    {"max_connections": "3"},
    {"max_connections": "10", "max_wal_senders": "7", "wal_level": "logical"},
    {"max_connections": "10", "max_wal_senders": "10", "wal_level": "logical"},
    {"max_connections": "10", "max_wal_senders": "6", "wal_level": "logical"},
    {"wal_level": "minimal"},
    {"wal_level": "minimal", "max_wal_senders": "0"},
    {"wal_level": "minimal", "max_wal_senders": "0", "archive_mode": "on"},
    {"max_connections": "10", "min_wal_size": "31MB"},
    {"log_statement_stats": "on", "log_parser_stats": "on"},
    {"max_parallel_workers": "100", "max_worker_processes": "2"},
]


@SOME_START
def test_the_check_foresees_whether_the_server_starts(server: Server):
    cases = [{**given, "shared_buffers": "1MB"} for given in TOGETHER]
    expected = [not refused(given, server) for given in cases]
    answers = [server.starts(given) for given in cases]
    assert disagreements(cases, expected, answers) == []


# As they stand in a file, without quotes where these have none.
FILE_LINES = [
    "ssl_cert_file = server.crt",
    "ssl_cert_file = a/server.crt",
    "log_filename = 'postgresql.log'",
    "work_mem = 1.5MB",
    "work_mem = '1.5MB'",
    "work_mem = .5GB",
    "work_mem = 2048kB",
    "work_mem=+4MB",
    "work_mem 4MB",
    "work_mem = 0x1000",
    "work_mem = 010MB",
    "work_mem = 1e4",
    "work_mem = '1e4'",
    "work_mem = 4 MB",
    "work_mem = '4 MB'",
    "work_mem = 4MB # x",
    "work_mem = 4MB, 5MB",
    "work_mem =",
    "work_mem = 4MB\u00a0",
    "checkpoint_timeout = 0.1h",
    "checkpoint_timeout = '0.1h'",
    "random_page_cost = 1e0",
    "random_page_cost = 1.0e0",
    "random_page_cost = 1.",
    "random_page_cost = .5",
    "checkpoint_completion_target = 9e-1",
    "fsync = 'off '",
    "fsync = of",
    "fsync = ON",
    "fsync = ' on'",
    "cluster_name = 'a # b'",
    "cluster_name = 'it''s'",
    "cluster_name = 'it\\'s'",
    "search_path = a-b",
    "log_connections = t",
    "log_connections = tru",
    "log_connections = on",
    "log_connections = 'receipt'",
    "log_connections = 'reciept'",
    "log_connections = 'on,receipt'",
    "log_connections = ''",
    "debug_io_direct = 'dta'",
    "debug_io_direct = 'data, wal'",
    "createrole_self_grant = 'sett'",
    "createrole_self_grant = 'set,inherit'",
    "client_encoding = utf99",
    "client_encoding = 'UTF-8'",
    "client_encoding = latin1",
    "synchronous_standby_names = '(a'",
    "synchronous_standby_names = 'a b'",
    "synchronous_standby_names = 'a, \"b c\", *'",
    "synchronous_standby_names = 'FIRST 1 (a, b)'",
    "synchronous_standby_names = '2 (a, b)'",
    "synchronous_standby_names = 'ANY 0 (a)'",
    "synchronous_standby_names = 'ANY (a)'",
    "synchronous_standby_names = ''",
    "work_mem = '4MB",
    "1work_mem = 4MB",
    "work_mem = 4MB work_mem = 5MB",
    "log_destination = 'stderr,'",
    "datestyle = 'iso, foo'",
    "datestyle = 'sql, dmy, iso'",
    "datestyle = 'dmy, postgres'",
    "datestyle = ''",
    "recovery_target = 'now'",
    "recovery_target_time = 'today'",
    "recovery_target_lsn = 'zz'",
    "recovery_target_lsn = '0/16B3748'",
    "default_table_access_method = ''",
    "backtrace_functions = 'f(x)'",
    "backtrace_functions = 'f, g'",
    "search_path = 'a b'",
    "search_path = '\"a b\", c'",
    "search_path = 'a,'",
    "synchronized_standby_slots = 'a b'",
    "synchronized_standby_slots = 'a, b'",
    "io_max_concurrency = 0",
    "autovacuum_max_workers = 262143",
]


@EACH_SERVER
def test_lines_of_a_file_are_decided_as_by_the_server(server):
    texts = [f"{line}\n" for line in FILE_LINES]
    files = [read(text) for text in texts]
    expected = [
        not file.faults and not refused(dict(file.settings), server) for file in files
    ]
    assert not disagreements(FILE_LINES, expected, server.reads_each(texts))


# What versions write differently, with the version that it is for.
CARRIED = [
    (
        "18",
        {"shared_buffers": "0.5GB", "work_mem": "1.5MB", "checkpoint_timeout": "0.1h"},
    ),
    (
        "18",
        {
            "vacuum_cost_delay": "0.5ms",
            "effective_cache_size": "2.5TB",
            "jit_above_cost": "1e6",
        },
    ),
    ("17", {"log_connections": "t", "log_disconnections": "of"}),
    ("9.6", {"log_connections": "tru", "password_encryption": "of"}),
    ("14", {"wal_compression": "tr"}),
    ("9.4", {"archive_mode": "of"}),
    ("18", {"log_connections": "receipt,authorization"}),
    ("18", {"random_page_cost": "11e-1"}),
]


@EACH_SERVER
def test_a_written_file_is_read_by_the_server_that_it_is_for(server):
    given = [
        translate(settings, major, server.major).settings for major, settings in CARRIED
    ]
    written = [write(settings, server.major) for settings in given]
    expected = [not refused(settings, server) for settings in given]
    assert all(expected)
    assert not disagreements(CARRIED, expected, server.reads_each(written))


# Lines about which check and `postgres -C` differ, and why; others they decide alike.
EXCEPTIONS = {
    "the build": [
        "wal_compression = lz4",
        "wal_compression = zstd",
        "wal_sync_method = fsync_writethrough",
        "io_method = io_uring",
        "timezone = Mars/Olympus",
        "lc_messages = xx_XX.UTF-8",
        "timezone_abbreviations = 'Mars'",
        "max_stack_depth = 100MB",
        "bonjour = on",
    ],
    "a later minor release": ["data_sync_retry = on"],
    "not a number, which 9.3 and 9.5 take": ["random_page_cost = 'nan'"],
}
# Refused at the start alone: `postgres -C` takes them.
MANY_CONNECTIONS = ("max_connections", "262143")
AT_THE_START = [
    ("max_wal_size", "31MB"),
    ("archive_mode", "always"),
    ("archive_mode", "1"),
    MANY_CONNECTIONS,
    ("wal_consistency_checking", "nonsense"),
    ("seed", "0.5"),
]
# Values as the server has them, in its own unit, whatever the spelling of words.
VALUES = [
    ("wal_buffers", "1"),
    ("wal_buffers", "0"),
    ("wal_buffers", "-1"),
    ("wal_buffers", "64kB"),
    ("autovacuum_work_mem", "1"),
    ("autovacuum_work_mem", "512kB"),
    ("autovacuum_work_mem", "-1"),
    ("wal_compression", "on"),
    ("wal_compression", "yes"),
    ("wal_compression", "off"),
    ("work_mem", "010MB"),
    ("work_mem", "0x400"),
    ("checkpoint_timeout", "90000ms"),
    ("fsync", "of"),
    ("client_min_messages", "debug"),
    ("wal_level", "archive"),
    ("synchronous_commit", "1"),
    ("random_page_cost", "1.5e0"),
    ("effective_cache_size", "1GB"),
    ("archive_mode", "0"),
]


@SOME_START
def test_what_is_decided_otherwise_has_its_reason(server):
    lines = [line for each in EXCEPTIONS.values() for line in each]
    files = [read(f"{line}\n") for line in lines]
    expected = [
        not file.faults and not refused(dict(file.settings), server) for file in files
    ]
    answers = server.reads_each([f"{line}\n" for line in lines])
    for line, file, good, (taken, said) in zip(
        lines, files, expected, answers, strict=True
    ):
        codes = {
            each.code for each in check(file.settings, [server.major], for_run=False)
        }
        is_build = line in EXCEPTIONS["the build"] or line.startswith("data_sync")
        assert taken == good or (good if is_build else taken), (line, said)
        assert not good or taken or codes & {"by_build", "minor_release"}, (line, said)


@SOME_START
def test_a_start_decides_what_minus_c_leaves_open(server):
    asked = {each: not refused(dict([each]), server) for each in AT_THE_START}
    if "BENCHLAB_TEST_ALL" not in os.environ and asked[MANY_CONNECTIONS]:
        # Before 9.6 it starts, and fills memory for all of them for seconds.
        del asked[MANY_CONNECTIONS]
    answers = [server.starts(dict([each])) for each in asked]
    assert disagreements([*asked], [*asked.values()], answers) == []


@SOME_START
def test_values_are_those_of_the_server(server):
    known = [(name, text) for name, text in VALUES if setting(name, server.major)]
    wrong = []
    for (name, text), said in zip(known, server.shows_each(known), strict=True):
        found = setting(name, server.major)
        same = {"debug": "debug2"}.get(said, said)
        if refused({name: text}, server) or said == "":
            assert bool(refused({name: text}, server)) == (said == ""), (name, text)
        elif values.parse(text, found) != values.parse(same, found):
            wrong.append((name, text, said))
    assert not wrong
