"""One configuration for many versions; every pair of versions is walked."""

import functools
import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from runs.configurations.services.contents import FIXED_POINT
from runs.postgresql_settings import (
    conf_text,
    fitting,
    translation_rules,
    values,
    version_notes,
)
from runs.postgresql_settings.carried_defaults import CARRIED
from runs.postgresql_settings.catalogue import (
    MAJORS,
    catalogue,
    is_older,
    names,
    setting,
)
from runs.postgresql_settings.fitting import Fitted, fit, home
from runs.postgresql_settings.translation import translate
from runs.postgresql_settings.translation_rules import RULES
from runs.postgresql_settings.unlisted import BACKPORTED
from runs.postgresql_settings.validation import check, errors
from tests.unit.postgresql_settings.servers import Server, asked_often, started_often

# Settings carried from version to version; every pair of versions is walked.


def others(major):
    """All versions but that one."""
    return [each for each in MAJORS if each != major]


@functools.cache
def everything(major):
    """All settable settings of a version at their defaults, as a file would give them."""
    return {
        found.name: values.default(found)
        for found in catalogue(major).values()
        if not found.is_preset
    }


@functools.cache
def everything_translated(source, target):
    return translate(everything(source), source, target)


@pytest.mark.parametrize("source", MAJORS)
def test_nothing_is_forgotten_between_any_two_versions(source):
    for target in others(source):
        done = everything_translated(source, target)
        moved = {change.name_from for change in done.changes}
        lost = {each.name_from for each in done.impossible}
        arrived = moved | lost | {*done.settings, *done.recovery_conf}
        assert set(everything(source)) - arrived == set(), target
        found = errors(check(done.settings, [target], for_run=False))
        assert {each.code for each in found} == set(), target
        # what came with a minor release may be there
        beyond = set(done.settings) - set(names(target))
        assert beyond <= {"data_sync_retry", *BACKPORTED}, target


@pytest.mark.parametrize("source", MAJORS)
def test_every_change_and_loss_says_why(source):
    for target in others(source):
        done = everything_translated(source, target)
        for each in (*done.changes, *done.impossible):
            assert each.reason, (target, each)
            assert "%(" not in each.reason % each.parameters, (target, each)
        for note in done.notes:
            assert "%(" not in note.message % note.parameters, (target, note)


def test_every_setting_that_went_has_its_own_reason_or_successor():
    carried = {rule.older for rule in RULES}
    for older, newer in itertools.pairwise(MAJORS):
        for name in set(names(older)) - set(names(newer)):
            assert name in carried or name in version_notes.REASONS, (
                f"{name} went with {newer}"
            )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.at}-{rule.older}")
def test_every_rule_stands_where_the_catalogue_changes(rule):
    below = MAJORS[MAJORS.index(rule.at) - 1]
    in_file = {*names(below), *version_notes.RECOVERY_CONF}
    assert rule.older in in_file
    assert setting(rule.newer, rule.at) or rule.newer in version_notes.RECOVERY_CONF
    if rule.older != rule.newer:
        assert setting(rule.older, rule.at) is None
        assert setting(rule.newer, below) is None


@pytest.mark.parametrize("pair", translation_rules.KIN, ids=lambda pair: pair[0])
def test_kin_are_never_in_one_version(pair):
    for major in MAJORS:
        assert sum(setting(name, major) is not None for name in pair) <= 1


CASES = [
    (
        "9.4",
        "9.5",
        {"checkpoint_segments": "3"},
        {"max_wal_size": "144MB", "min_wal_size": "112MB"},
    ),
    (
        "9.3",
        "18",
        {"checkpoint_segments": "3200"},
        {"max_wal_size": "150GB", "min_wal_size": "102416MB"},
    ),
    ("10", "9.3", {"max_wal_size": "160GB"}, {"checkpoint_segments": "3413"}),
    ("9.5", "9.4", {"max_wal_size": "32MB"}, {"checkpoint_segments": "1"}),
    ("9.6", "10", {"max_wal_size": "64"}, {"max_wal_size": "1GB"}),
    ("10", "9.6", {"max_wal_size": "1024"}, {"max_wal_size": "1GB"}),
    ("12", "13", {"wal_keep_segments": "32"}, {"wal_keep_size": "512MB"}),
    ("13", "12", {"wal_keep_size": "100MB"}, {"wal_keep_segments": "7"}),
    ("9.2", "9.3", {"replication_timeout": "1min"}, {"wal_sender_timeout": "1min"}),
    (
        "9.3",
        "9.2",
        {"unix_socket_directories": "/a, /b"},
        {"unix_socket_directory": "/a"},
    ),
    ("9.5", "9.6", {"wal_level": "archive"}, {"wal_level": "replica"}),
    ("9.6", "9.5", {"wal_level": "replica"}, {"wal_level": "hot_standby"}),
    ("10", "9.3", {"wal_level": "logical"}, {"wal_level": "hot_standby"}),
    (
        "9.6",
        "10",
        {"min_parallel_relation_size": "8MB"},
        {"min_parallel_table_scan_size": "8MB"},
    ),
    (
        "9.6",
        "9.5",
        {"synchronous_commit": "remote_apply"},
        {"synchronous_commit": "on"},
    ),
    (
        "10",
        "9.6",
        {"synchronous_standby_names": "FIRST 2 (a, b)"},
        {"synchronous_standby_names": "2 (a, b)"},
    ),
    (
        "10",
        "9.5",
        {"synchronous_standby_names": "FIRST 1 (a, b)"},
        {"synchronous_standby_names": "a, b"},
    ),
    ("12", "13", {"effective_io_concurrency": "4"}, {"effective_io_concurrency": "8"}),
    ("13", "12", {"effective_io_concurrency": "8"}, {"effective_io_concurrency": "4"}),
    ("11", "12", {"effective_io_concurrency": "4"}, {"effective_io_concurrency": "4"}),
    (
        "15",
        "16",
        {"force_parallel_mode": "regress"},
        {"debug_parallel_query": "regress"},
    ),
    ("16", "15", {"debug_parallel_query": "on"}, {"force_parallel_mode": "on"}),
    ("14", "15", {"wal_compression": "on"}, {"wal_compression": "on"}),
    ("15", "14", {"wal_compression": "zstd"}, {"wal_compression": "on"}),
    (
        "15",
        "14",
        {"log_destination": "stderr,jsonlog"},
        {"log_destination": "stderr,csvlog"},
    ),
    ("9.6", "14", {"password_encryption": "on"}, {"password_encryption": "md5"}),
    ("13", "14", {"password_encryption": "on"}, {"password_encryption": "md5"}),
    (
        "14",
        "9.6",
        {"password_encryption": "scram-sha-256"},
        {"password_encryption": "on"},
    ),
    ("9.5", "9.4", {"archive_mode": "always"}, {"archive_mode": "on"}),
    ("17", "18", {"ssl_ecdh_curve": "prime256v1"}, {"ssl_groups": "prime256v1"}),
    ("18", "17", {"ssl_groups": "X25519:prime256v1"}, {"ssl_ecdh_curve": "X25519"}),
    (
        "18",
        "17",
        {"log_connections": "receipt,authentication"},
        {"log_connections": "on"},
    ),
    ("17", "18", {"log_connections": "on"}, {"log_connections": "on"}),
    ("18", "19", {"io_workers": "4"}, {"io_min_workers": "4", "io_max_workers": "4"}),
    ("19", "18", {"io_max_workers": "4"}, {"io_workers": "4"}),
    (
        "19",
        "18",
        {"log_min_messages": "warning,autovacuum:debug1"},
        {"log_min_messages": "warning"},
    ),
    ("9.6", "9.5", {"checkpoint_timeout": "2h"}, {"checkpoint_timeout": "1h"}),
    ("12", "11", {"vacuum_cost_delay": "0.2ms"}, {"vacuum_cost_delay": "1ms"}),
    ("12", "11", {"work_mem": "1.5GB"}, {"work_mem": "1536MB"}),
    ("9.4", "9.3", {"work_mem": "1TB"}, {"work_mem": "1024GB"}),
    (
        "13",
        "10",
        {"track_activity_query_size": "1MB"},
        {"track_activity_query_size": "102400"},
    ),
    ("9.2", "18", {"sort_mem": "4MB"}, {"work_mem": "4MB"}),
    ("9.2", "18", {"pg_bigm.enable_recheck": "on"}, {"pg_bigm.enable_recheck": "on"}),
    ("9.2", "18", {"datestyle": "iso"}, {"DateStyle": "iso"}),
    ("16", "16", {"work_mem": "1GB"}, {"work_mem": "1GB"}),
]


@pytest.mark.parametrize(("source", "target", "given", "expected"), CASES)
def test_a_setting_becomes_what_does_its_work(source, target, given, expected):
    assert translate(given, source, target).settings == expected


@pytest.mark.parametrize(
    ("source", "target", "name", "value", "why"),
    [
        ("9.6", "10", "sql_inheritance", "on", "Since 10"),
        ("10", "11", "replacement_sort_tuples", "1000", "quicksort"),
        ("13", "14", "operator_precedence_warning", "on", "removed in 14"),
        ("13", "14", "vacuum_cleanup_index_scale_factor", "0.1", "Since 14"),
        ("14", "15", "stats_temp_directory", "pg_stat_tmp", "shared memory"),
        ("15", "16", "vacuum_defer_cleanup_age", "0", "hot_standby_feedback"),
        ("11", "18", "trigger_file", "/tmp/x", "pg_promote()"),
        ("16", "17", "old_snapshot_threshold", "1h", "transaction_timeout"),
        ("16", "17", "db_user_namespace", "off", "removed in 17"),
        ("9.6", "10", "password_encryption", "off", "clear text"),
        ("12", "10", "jit", "off", "came with 11"),
        ("10", "9.6", "max_parallel_workers", "8", "max_worker_processes"),
        ("10", "9.6", "synchronous_standby_names", "ANY 1 (a, b)", "came with 10"),
        ("9.6", "9.5", "synchronous_standby_names", "2 (a, b)", "came with 9.6"),
        ("11", "12", "dynamic_shared_memory_type", "none", "cannot be"),
    ],
)
def test_a_setting_without_equivalent_is_dropped_with_the_reason(
    source, target, name, value, why
):
    done = translate({name: value}, source, target)
    (lost,) = done.impossible
    assert (lost.name_from, lost.value_from, dict(done.settings)) == (name, value, {})
    assert why in lost.reason % lost.parameters


def test_a_change_tells_both_names_and_values():
    (most, _least) = translate({"checkpoint_segments": "64"}, "9.4", "16").changes
    assert (most.name_from, most.value_from) == ("checkpoint_segments", "64")
    assert (most.name_to, most.value_to) == ("max_wal_size", "3GB")
    assert "3 x checkpoint_segments x 16MB" in most.reason


def test_there_and_back_again_is_where_it_began():
    given = {
        "checkpoint_segments": "64",
        "wal_keep_segments": "32",
        "wal_level": "hot_standby",
        "effective_io_concurrency": "4",
        "shared_buffers": "8GB",
    }
    there = translate(given, "9.3", "18")
    assert translate(there.settings, "18", "9.3").settings == given


def test_another_wal_segment_size_is_counted_with():
    done = translate(
        {"wal_keep_segments": "4"}, "11", "13", wal_segment_bytes=64 * 1024**2
    )
    assert done.settings == {"wal_keep_size": "256MB"}


def test_a_value_that_the_source_would_refuse_is_left_for_the_check():
    assert translate({"work_mem": "much"}, "9.2", "18").settings == {"work_mem": "much"}
    (lost,) = translate({"checkpoint_segments": "much"}, "9.2", "18").impossible
    assert "takes a number" in lost.reason % lost.parameters


def test_recovery_conf_moves_into_postgresql_conf_with_12():
    given = {
        "standby_mode": "on",
        "primary_conninfo": "host=a",
        "trigger_file": "/tmp/x",
    }
    done = translate(given, "10", "12")
    assert done.settings == {
        "primary_conninfo": "host=a",
        "promote_trigger_file": "/tmp/x",
    }
    assert done.recovery_conf == {}


def test_recovery_settings_go_back_into_their_file_before_12():
    done = translate({"primary_conninfo": "host=a", "work_mem": "1MB"}, "12", "10")
    assert done.settings == {"work_mem": "1MB"}
    assert done.recovery_conf == {"primary_conninfo": "host=a", "standby_mode": "on"}


def test_pausing_at_the_target_became_an_action():
    given = {"pause_at_recovery_target": "off"}
    assert translate(given, "9.4", "9.5").recovery_conf == {
        "recovery_target_action": "promote"
    }


@pytest.mark.parametrize(
    ("source", "target", "name", "was", "now"),
    [
        ("11", "12", "jit", "off", "on"),
        ("18", "19", "jit", "on", "off"),
        ("13", "14", "checkpoint_completion_target", "0.5", "0.9"),
        ("9.3", "9.4", "work_mem", "1MB", "4MB"),
        ("9.6", "10", "max_parallel_workers_per_gather", "0", "2"),
        ("14", "13", "password_encryption", "scram-sha-256", "md5"),
    ],
)
def test_a_default_that_changed_is_noted_but_not_set(source, target, name, was, now):
    done = translate({}, source, target)
    (note,) = [each for each in done.notes if each.name == name]
    assert (note.parameters["was"], note.parameters["now"]) == (was, now)
    assert dict(done.settings) == {}


def test_a_default_that_is_set_is_not_noted():
    assert "jit" not in {
        each.name for each in translate({"jit": "off"}, "11", "12").notes
    }


def test_the_same_amount_in_another_unit_is_no_change_of_a_default():
    assert "max_wal_size" not in {
        each.name for each in translate({}, "9.6", "10").notes
    }


def test_what_came_between_the_versions_is_noted():
    (note,) = [each for each in translate({}, "10", "11").notes if each.name == "jit"]
    assert note.message % note.parameters == "PostgreSQL 11 has jit, by default off."


def test_the_way_back_is_noted_too():
    (note,) = [
        each for each in translate({}, "18", "17").notes if each.name == "io_method"
    ]
    assert "does not exist" in note.message


@pytest.mark.parametrize("disks", [0, 1, 2, 4, 10, 64, 200])
def test_prefetching_by_disks_is_found_again(disks):
    assert translation_rules.disks(translation_rules.prefetch_distance(disks)) == disks


def test_steps_are_in_the_order_of_time():
    assert is_older("9.6", "10")
    assert not is_older("10", "9.6")


# One configuration for many versions.
#
# The settings that publications print: each is one that its version takes.
#
# Files below `runs/published/` have them under `configurations`: slug to `version` and `settings`.


@pytest.mark.parametrize(
    ("given", "major", "expected"),
    [
        ({}, "18", "18"),
        ({"work_mem": "8MB"}, "9.3", "9.3"),
        ({"checkpoint_segments": "16"}, "18", "9.4"),
        ({"checkpoint_segments": "16"}, "9.2", "9.2"),
        ({"max_wal_size": "1GB"}, "9.2", "9.5"),
        ({"shared_bufers": "1GB"}, "16", "16"),
        ({"replication_timeout": "1min"}, "18", "9.2"),
    ],
)
def test_settings_are_at_home_in_the_nearest_version_that_takes_them(
    given, major, expected
):
    assert home(given, major) == expected


def test_what_is_written_for_a_version_is_held_to_its_words():
    fitted = fit({"checkpoint_segments": "16"}, "18", written_for="18")
    assert [each.code for each in fitted.errors] == ["removed"]


def test_the_words_of_each_version_are_found():
    found = {
        major: fit({"checkpoint_segments": "16"}, major)
        for major in ("9.4", "9.5", "18")
    }
    assert found["9.4"].settings == {"checkpoint_segments": "16"}
    assert found["9.5"].settings == {"max_wal_size": "768MB", "min_wal_size": "528MB"}
    assert found["18"].changes == found["9.5"].changes
    assert not any(each.errors for each in found.values())


def test_benchlabs_own_settings_are_left_out_with_the_reason():
    fitted = fit(
        {"port": "1", "ssl": "on", "log_directory": "/x", "work_mem": "8MB"}, "16"
    )
    assert fitted.settings == {"work_mem": "8MB"}
    assert {each.name_from for each in fitted.left_out} == {
        "port",
        "ssl",
        "log_directory",
    }
    assert fitted.errors == ()


@pytest.mark.parametrize("major", ["9.3", "12", "18"])
def test_commands_are_left_out_with_the_reason(major):
    settings = {"archive_command": "cp %p /x", "work_mem": "8MB"}
    fitted = fit(settings, major)
    assert fitted.settings == {"work_mem": "8MB"}
    [lost] = fitted.left_out
    assert (lost.name_from, lost.value_from) == ("archive_command", "cp %p /x")
    assert "on the database host" in lost.reason
    assert fitted.errors == ()


@pytest.mark.parametrize(
    ("written_for", "major"), [("9.4", "18"), ("18", "9.4"), ("16", "16")]
)
def test_where_archiving_is_on_nothing_is_archived_and_no_wal_is_kept_for_it(
    written_for, major
):
    settings = {
        "archive_mode": "on",
        "wal_level": "hot_standby",
        "archive_command": "cp %p /x",
    }
    fitted = fit(settings, major, written_for=written_for)
    assert fitted.settings["archive_command"] == "true"
    assert fitted.left_out == ()
    [change] = [each for each in fitted.changes if each.name_to == "archive_command"]
    assert (change.value_from, change.value_to) == ("cp %p /x", "true")
    assert fitted.errors == ()


def test_libraries_from_elsewhere_are_refused():
    [error] = fit({"shared_preload_libraries": "/tmp/x"}, "16").errors
    assert error.code == "library_elsewhere"


@pytest.mark.parametrize("major", ["10", "17"])
def test_settings_of_a_standby_are_left_out_of_every_version(major):
    settings = {"primary_conninfo": "host=a", "standby_mode": "on", "work_mem": "8MB"}
    fitted = fit(settings, major, written_for="10")
    assert "standby_mode" in {each.name_from for each in fitted.left_out}
    assert "standby_mode" not in fitted.settings


def test_larger_segments_are_initdbs_to_see_to_unless_a_size_is_set():
    large = 1024 * 1024 * 1024
    assert fit({}, "18", wal_segment_bytes=large).errors == ()
    [error] = fit({"min_wal_size": "80MB"}, "18", wal_segment_bytes=large).errors
    assert error.name == "min_wal_size"


def test_connections_are_counted_with_the_default():
    assert fit({}, "18").max_connections == 100
    assert fit({"max_connections": "500"}, "18").max_connections == 500
    assert fit({"max_connections": "many"}, "18").max_connections == 100


def test_the_same_finding_of_many_versions_is_one():
    fitted = [fit({"work_mem": "1kB"}, major) for major in ("9.3", "18")]
    [finding] = fitting.merged_findings(fitted)
    assert finding.majors == ("9.3", "18")
    assert finding.parameters["major"] == "9.3, 18"


def test_defaults_that_differ_are_told_unless_they_are_set():
    def names(settings):
        return {
            each.name
            for each in fitting.across([fit(settings, major) for major in ("11", "12")])
        }

    assert "jit" in names({})
    assert "jit" not in names({"jit": "off"})
    assert fitting.across([fit({}, "18")]) == ()


PUBLISHED = Path(__file__).parents[3] / "runs" / "published"


def configurations() -> list[Any]:
    """All configurations of all publications, named by file and slug."""
    found = []
    for file in sorted(PUBLISHED.glob("*.yaml")):
        published = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader) or {}
        for slug, each in (published.get("configurations") or {}).items():
            found.append(pytest.param(each, id=f"{file.stem}:{slug}"))
    return found


FOUND = configurations()


def major(version: str) -> str:
    """The major version of `9.3.2` or `10.1`."""
    parts = str(version).split(".")
    return ".".join(parts[:2]) if parts[0] == "9" else parts[0]


def test_publications_have_configurations():
    assert FOUND


def refusals(configuration: Any, version: str) -> str:
    """Why a version would not start with the configuration; empty where it would."""
    found = errors(check(configuration["settings"], [version], for_run=False))
    return "; ".join(each.message % each.parameters for each in found)


@pytest.mark.parametrize("configuration", FOUND)
def test_its_version_takes_every_setting(configuration):
    if (
        configuration.get("version") is None
    ):  # not printed: then some version has to take all
        said = [refusals(configuration, version) for version in MAJORS]
        assert "" in said, said
    else:
        assert refusals(configuration, major(configuration["version"])) == ""


@pytest.mark.parametrize("configuration", FOUND)
def test_its_values_are_written_as_texts(configuration):
    """YAML would make `on` a truth value, and 0.90 another number than was printed."""
    for name, value in configuration["settings"].items():
        assert isinstance(value, str), name


BUILT_IN = [
    pytest.param({"settings": FIXED_POINT}, id="fixed-point-small"),
    pytest.param({"settings": {}}, id="postgresql-defaults"),
]


def translated(configuration: Any, server: Server) -> Fitted:
    """What a configuration becomes for a server."""
    version = configuration.get("version")
    # No build for Linux accepts "windows", and none "zstd" that was made without its library.
    unknown = {"windows", "zstd"}
    settings = {k: v for k, v in configuration["settings"].items() if v not in unknown}
    return fit(settings, server.major, written_for=major(version) if version else "")


@pytest.mark.parametrize("server", asked_often(), ids=str)
def test_every_real_server_takes_each_translated(server: Server):
    every = [*BUILT_IN, *FOUND]
    fitted = [translated(each.values[0], server) for each in every]
    wrong = {e.id: f.errors for e, f in zip(every, fitted, strict=True) if f.errors}
    assert wrong == {}
    answers = server.reads_each(
        [conf_text.write(f.settings, server.major) for f in fitted]
    )
    refused = {
        e.id: said for e, (taken, said) in zip(every, answers, strict=True) if not taken
    }
    assert refused == {}


@pytest.mark.parametrize("server", started_often(), ids=str)
def test_every_real_server_starts_with_what_is_built_in(server: Server):
    for settings in (FIXED_POINT, {}):
        fitted = fit({**settings, "shared_buffers": "16MB"}, server.major)
        started, log = server.starts(fitted.settings)
        assert started, log


@pytest.mark.parametrize("rule", CARRIED, ids=lambda rule: f"{rule.since}-{rule.name}")
def test_a_default_that_a_setting_depends_on_is_carried(rule):
    given = {
        "wal_level": "minimal",
        "max_worker_processes": "40",
        "recovery_target_time": "2020-01-01 00:00:00+00",
        "autovacuum_vacuum_cost_limit": "300",
        "max_replication_slots": "40",
        "autovacuum_max_workers": "20",
    }
    source = MAJORS[MAJORS.index(rule.since) - 1]
    written = {rule.because: given[rule.because]}
    translated = translate(written, source, rule.since)
    assert rule.name in translated.settings
    assert (rule.because, rule.name) in {
        (c.name_from, c.name_to) for c in translated.changes
    }
    own = {**written, rule.name: setting(rule.name, rule.since).boot}
    assert translate(written, rule.since, MAJORS[-1]).settings.keys() == written.keys()
    if setting(rule.name, source) is not None:
        assert translate(own, source, rule.since).settings[rule.name] == own[rule.name]


def test_what_was_written_for_minimal_wal_starts_as_before():
    translated = translate({"wal_level": "minimal"}, "9.6", "18").settings
    assert translated == {"wal_level": "minimal", "max_wal_senders": "0"}
    assert not errors(check(translated, ["18"], for_run=False))
