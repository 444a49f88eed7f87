"""Settings that are BenchLab's own in its clusters, or that reach out of them.

What a user writes never becomes shell on anybody's server. Sources: the chapters "Write Ahead
Log", "Client Connection Defaults" and "PL/Perl Under the Hood" of PostgreSQL's manual.

See `runs.execution.clusters.postgres`: the server listens on a Unix socket in a folder of the run
and on nothing else, and its log is a file of the run.
"""

import re
from collections.abc import Iterator, Mapping

from runs.postgresql_settings.findings import About, Finding
from runs.wording import gettext_noop as _

# Commands without effect; `(disabled)` is what SHOW prints without archiving.
HARMLESS_COMMANDS = (
    "",
    "(disabled)",
    "true",
    "/bin/true",
    "/usr/bin/true",
    "exit 0",
    "cd .",
)
LIBRARIES = frozenset(
    {
        "archive_library",
        "jit_provider",
        "local_preload_libraries",
        "oauth_validator_libraries",
        "session_preload_libraries",
        "shared_preload_libraries",
    }
)
# Search paths for libraries and extensions, and names for the installation's own folder.
PLACES = {"dynamic_library_path": "$libdir", "extension_control_path": "$system"}
# Names end so in the server itself and in its extensions, and will in those to come.
_COMMAND = re.compile(r"\A(.*[._])?command")
# A language's library may run a setting's value when it is loaded (plperl.on_init, pllua.on_init,
# pljava.vmoptions), and nobody knows the extensions to come. So only these are taken: extensions
# whose settings have been read in their source or manual, and are numbers, words and switches. What
# is a command by its name is refused of them as well.
KNOWN_EXTENSIONS = frozenset(
    {
        "auth_delay",
        "auto_explain",
        "basic_archive",  # its folder is looked at by `ownership`
        "bloom",
        "citus",
        "cron",
        "hnsw",
        "hypopg",
        "isn",
        "ivfflat",
        "orioledb",
        "passwordcheck",
        "pg_hint_plan",
        "pg_partman_bgw",
        "pg_prewarm",
        "pg_qualstats",
        "pg_stat_kcache",
        "pg_stat_monitor",
        "pg_stat_statements",
        "pg_store_plans",
        "pg_trgm",
        "pg_wait_sampling",
        "pgaudit",
        "pgrowlocks",
        "plpgsql",
        "plpgsql_check",
        "postgres_fdw",
        "sepgsql",
        "timescaledb",
        "vchordrq",
    }
)
# Harmless settings of languages whose others are code.
_KNOWN = frozenset({"plperl.use_strict"})
_LIBRARY_NAME = re.compile(r"(\$libdir/(plugins/)?)?\w[\w.+-]*")
_BELOW = re.compile(r"(/\w[\w.+-]*)*/?")


def runs_command(name: str, value: str) -> bool:
    """Whether the server would hand the value to a shell or an interpreter, and it does something.

    Only values that are known to do nothing are none.
    """
    if is_command(name):
        return value.strip() not in HARMLESS_COMMANDS
    return may_be_code(name) and bool(value.strip())


def is_command(name: str) -> bool:
    """Whether the setting is a command by its name."""
    return _COMMAND.fullmatch(name.lower()) is not None


def may_be_code(name: str) -> bool:
    """Whether the setting is one of an extension that BenchLab does not know."""
    extension, dot, parameter_name = name.lower().partition(".")
    return (
        bool(dot)
        and "." not in parameter_name
        and extension not in KNOWN_EXTENSIONS
        and name.lower() not in _KNOWN
    )


def loads_from_elsewhere(name: str, value: str) -> bool:
    """Whether the server would load a library from outside its installation."""
    if name.lower() in LIBRARIES:
        names = [library.strip().strip('"').strip() for library in value.split(",")]
        return any(
            library and _LIBRARY_NAME.fullmatch(library) is None for library in names
        )
    standard_folder = PLACES.get(name.lower())
    if standard_folder is None:
        return False
    return any(
        folder and not _is_below(folder.strip(), standard_folder)
        for folder in value.split(":")
    )


def _is_below(path: str, standard_folder: str) -> bool:
    return (
        path.startswith(standard_folder)
        and _BELOW.fullmatch(path[len(standard_folder) :]) is not None
    )


_PLACE = _("BenchLab gives each cluster its own %(name)s.")
_LEAVE_OUT = _("Leave %(name)s out.")
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "config_file",
            "data_directory",
            "external_pid_file",
            "hba_file",
            "hosts_file",
            "ident_file",
            "port",
            "unix_socket_directories",
            "unix_socket_directory",
        ),
        _PLACE,
    ),
    **dict.fromkeys(
        ("unix_socket_group", "unix_socket_permissions"),
        _(
            "Only BenchLab's account may connect to its clusters; %(name)s would change that."
        ),
    ),
    "listen_addresses": _("BenchLab itself sets where its clusters listen."),
}
_SHELL = _(
    "PostgreSQL would run %(name)s on the database host, as the account that BenchLab uses."
)
_SHELL_REMEDY = _(
    "Leave %(name)s out, or give one that does nothing: true, exit 0, or nothing."
)
_UNKNOWN = _(
    "BenchLab does not know the extension of %(name)s, which may run the value as code."
)
_UNKNOWN_REMEDY = _("Leave %(name)s out, or set it empty.")
_LIBRARY = _(
    "%(name)s would load a file that is not one of the installation's own libraries."
)
_LIBRARY_REMEDY = _(
    "Give names of libraries without a path, and install them with that PostgreSQL."
)
# The name of a log file may hold folders as well.
_FOLDERS = (
    "basic_archive.archive_directory",
    "log_directory",
    "log_filename",
    "promote_trigger_file",
    "stats_temp_directory",
)


def findings(settings: Mapping[str, str], major: str) -> Iterator[Finding]:
    """What the settings, by lower-case name, take out of BenchLab's hands."""
    for name in settings.keys() & _REFUSED.keys():
        yield About(name, major).error("set_by_benchlab", _REFUSED[name], _LEAVE_OUT)
    for name, value in settings.items():
        if runs_command(name, value):
            message, remedy = _SHELL, _SHELL_REMEDY
            if may_be_code(name):
                message, remedy = _UNKNOWN, _UNKNOWN_REMEDY
            yield About(name, major).error("runs_command", message, remedy)
        if loads_from_elsewhere(name, value):
            yield About(name, major).error(
                "library_elsewhere", _LIBRARY, _LIBRARY_REMEDY
            )
    for name in _FOLDERS:
        if settings.get(name, "").startswith(("/", "~")) or ".." in settings.get(
            name, ""
        ):
            yield About(name, major).error(
                "outside_cluster",
                _(
                    "%(name)s is outside the cluster; BenchLab writes only below the cluster's "
                    "folder."
                ),
                _("Give a path within the data directory, or leave it out."),
            )
    yield from _logs(settings, major)
    if settings.get("ssl", "off").lower() in {"on", "true", "yes", "1", "t", "y"}:
        yield About("ssl", major).error(
            "needs_certificate",
            _(
                "With ssl = on the server does not start without a certificate in its cluster."
            ),
            _("Leave ssl out: BenchLab's clusters have no certificate, and need none."),
        )


def _logs(settings: Mapping[str, str], major: str) -> Iterator[Finding]:
    if settings.get("logging_collector", "off").lower() in {"on", "true", "yes", "1"}:
        yield About("logging_collector", major).warning(
            "log_elsewhere",
            _(
                "The logging collector writes the server's log into the cluster, not into the run."
            ),
            _(
                "Leave logging_collector out to keep the log as an artifact of each run."
            ),
        )
    destination = settings.get("log_destination", "stderr")
    if "stderr" not in destination.lower():
        yield About("log_destination", major).warning(
            "log_elsewhere",
            _("Without stderr in log_destination, runs keep no server log."),
            _("Add stderr to log_destination."),
        )
