"""Settings that are BenchLab's own in its clusters, or that reach out of them.

See `runs.execution.postgres`: the server listens on a Unix socket in a folder of the run and on
nothing else, and its log is a file of the run.
"""

from collections.abc import Iterator, Mapping

from runs.postgresql_settings import reach
from runs.postgresql_settings.findings import Finding, Severity
from runs.wording import gettext_noop as _

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
        _("Only BenchLab's account may connect to its clusters; %(name)s would change that."),
    ),
    "listen_addresses": _("BenchLab itself sets where its clusters listen."),
}
_SHELL = _("PostgreSQL would run %(name)s on the database host, as the account that BenchLab uses.")
_SHELL_REMEDY = _("Leave %(name)s out, or give one that does nothing: true, exit 0, or nothing.")
_UNKNOWN = _("BenchLab does not know the extension of %(name)s, which may run the value as code.")
_UNKNOWN_REMEDY = _("Leave %(name)s out, or set it empty.")
_LIBRARY = _("%(name)s would load what does not lie among the installation's own libraries.")
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
        yield _finding("error", "set_by_benchlab", name, major, _REFUSED[name], _LEAVE_OUT)
    for name, value in settings.items():
        if reach.runs_command(name, value):
            message, remedy = _SHELL, _SHELL_REMEDY
            if reach.may_be_code(name):
                message, remedy = _UNKNOWN, _UNKNOWN_REMEDY
            yield _finding("error", "runs_command", name, major, message, remedy)
        if reach.loads_from_elsewhere(name, value):
            yield _finding("error", "library_elsewhere", name, major, _LIBRARY, _LIBRARY_REMEDY)
    for name in _FOLDERS:
        if settings.get(name, "").startswith(("/", "~")) or ".." in settings.get(name, ""):
            yield _finding(
                "error",
                "outside_cluster",
                name,
                major,
                _("%(name)s lies outside of the cluster; BenchLab writes only below its folder."),
                _("Give a path within the data directory, or leave it out."),
            )
    yield from _logs(settings, major)
    if settings.get("ssl", "off").lower() in {"on", "true", "yes", "1", "t", "y"}:
        yield _finding(
            "error",
            "needs_certificate",
            "ssl",
            major,
            _("With ssl = on the server does not start without a certificate in its cluster."),
            _("Leave ssl out: BenchLab's clusters have no certificate, and need none."),
        )


def _logs(settings: Mapping[str, str], major: str) -> Iterator[Finding]:
    if settings.get("logging_collector", "off").lower() in {"on", "true", "yes", "1"}:
        yield _finding(
            "warning",
            "log_elsewhere",
            "logging_collector",
            major,
            _("The logging collector writes the server's log into the cluster, not into the run."),
            _("Leave logging_collector out to keep the log as an artifact of each run."),
        )
    destination = settings.get("log_destination", "stderr")
    if "stderr" not in destination.lower():
        yield _finding(
            "warning",
            "log_elsewhere",
            "log_destination",
            major,
            _("Without stderr in log_destination, runs keep no server log."),
            _("Add stderr to log_destination."),
        )


def _finding(
    severity: Severity, code: str, name: str, major: str, message: str, remedy: str
) -> Finding:
    return Finding(severity, code, name, (major,), message, {"name": name, "major": major}, remedy)
