"""What a server would run: commands, code, and libraries that are not its own."""

import pytest

from runs.postgresql_settings import reach
from runs.postgresql_settings.validation import check


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"archive_command": "true %p"}, "runs_command"),
        ({"restore_command": "true; id"}, "runs_command"),
        ({"archive_cleanup_command": "$(id)"}, "runs_command"),
        ({"recovery_end_command": "`id`"}, "runs_command"),
        ({"ssl_passphrase_command": "cat /x"}, "runs_command"),
        ({"repmgr.service_start_command": "id"}, "runs_command"),
        ({"plperl.on_init": "system 'id'"}, "runs_command"),
        ({"pllua.on_init": "os.execute('id')"}, "runs_command"),
        ({"PLLua.On_Init": "os.execute('id')"}, "runs_command"),
        ({"of_tomorrow.startup": "1"}, "runs_command"),
        ({"archive_library": "/tmp/x"}, "library_elsewhere"),
        ({"shared_preload_libraries": "pg_prewarm,../x"}, "library_elsewhere"),
        ({"shared_preload_libraries": '"/tmp/x"'}, "library_elsewhere"),
        ({"local_preload_libraries": "$libdir/../x"}, "library_elsewhere"),
        ({"jit_provider": "/tmp/x"}, "library_elsewhere"),
        ({"dynamic_library_path": "$libdir:/tmp"}, "library_elsewhere"),
        ({"dynamic_library_path": "$libdir/../x"}, "library_elsewhere"),
        ({"basic_archive.archive_directory": "/tmp"}, "outside_cluster"),
    ],
)
def test_what_would_run_on_the_server_is_refused(given, code):
    [finding] = check(given, ["16"])
    assert (finding.severity, finding.code) == ("error", code)
    assert finding.remedy


@pytest.mark.parametrize(
    "given",
    [
        *({"archive_command": value} for value in reach.HARMLESS_COMMANDS),
        {"restore_command": " true "},
        {"ssl_passphrase_command_supports_reload": "on"},
        {"log_replication_commands": "on"},
        {"plperl.on_init": ""},
        {"plperl.use_strict": "on"},
        {
            "auto_explain.log_min_duration": "250ms",
            "shared_preload_libraries": "auto_explain",
        },
        {
            "pg_stat_statements.track": "all",
            "shared_preload_libraries": "pg_stat_statements",
        },
        {"shared_preload_libraries": 'pg_stat_statements, "auto_explain",$libdir/pg_prewarm'},
        {"local_preload_libraries": "$libdir/plugins/x"},
        {"archive_library": "basic_archive"},
        {"dynamic_library_path": "$libdir:$libdir/extra"},
        {"jit_provider": "llvmjit"},
    ],
)
def test_what_does_nothing_and_what_is_installed_is_allowed(given):
    assert check(given, ["16"]) == ()
