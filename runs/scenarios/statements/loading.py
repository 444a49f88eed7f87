"""The data of a load: its role, its extensions, and the ways in which data come."""

from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.clusters.postgres import DATABASE
from runs.execution.errors import TargetProblem
from runs.execution.steps.steps import StepResult
from runs.scenarios.datasets import sending
from runs.scenarios.statements.connection import ROLE, client, connection
from runs.statements import data_script
from runs.statements.content import LoadContent
from runs.wording import gettext_noop as _

TEMPORARY_FILES = "4GB"


def role_sql() -> str:
    """An ordinary role, whose statements and their values come into no log of the server."""
    return f"""
CREATE ROLE {ROLE} LOGIN;
ALTER ROLE {ROLE} SET log_min_messages = 'fatal';
ALTER ROLE {ROLE} SET log_min_error_statement = 'panic';
ALTER ROLE {ROLE} SET temp_file_limit = '{TEMPORARY_FILES}';
GRANT ALL ON DATABASE {DATABASE} TO {ROLE};
ALTER SCHEMA public OWNER TO {ROLE};
"""


async def make_extensions(bench: Bench, names: Sequence[str]) -> None:
    """Make what the data need. Raises TargetProblem `extension_missing`."""
    if not names:
        return
    listed = await bench.sql(
        "list-extensions",
        "SELECT name FROM pg_catalog.pg_available_extensions ORDER BY 1;",
    )
    missing = sorted(set(names) - set(listed.split()) - {"plpgsql"})
    if missing:
        raise TargetProblem(
            _(
                "PostgreSQL %(version)s on the server lacks extensions of the data: %(names)s."
            ),
            code="extension_missing",
            remedy=_("Install them for this version, or leave the version out."),
            version=str(bench.levels["version"]),
            names=", ".join(missing),
        )
    made = [
        f'CREATE EXTENSION IF NOT EXISTS "{name}" WITH SCHEMA public;' for name in names
    ]
    await bench.sql("make-extensions", "\n".join(made))


async def _load_pgbench(bench: Bench, load: LoadContent) -> None:
    argv = (
        f"{bench.plan.client_bindir}/pgbench",
        "-i",
        "-q",
        "-s",
        str(load.data.scale),
        *connection(bench),
        DATABASE,
    )
    await bench.step("load", argv)


async def _load_sql(bench: Bench, load: LoadContent) -> None:
    path = f"{bench.directory}/load.sql"
    await sending.send_text(bench, load.data.script, path)
    result = await bench.step("load", client(bench, path), check=False, is_private=True)
    await bench.run("rm", "-f", path)
    if result.exit_status != 0:
        raise _not_loaded(bench, result)


# What an ordinary role cannot make, or what the database has already.
_LIST = (
    'pg_restore -l "$1" | grep -v -e " EXTENSION " -e "COMMENT - EXTENSION" '
    '-e " SCHEMA - public " -e "COMMENT - SCHEMA public" -e " ACL " -e "EVENT TRIGGER" '
    '-e " PUBLICATION " -e " SUBSCRIPTION "'
)
_RESTORE = f"""
PATH="$2:$PATH"; export PATH
list=$({_LIST}) || {{ echo "no list" >&2; exit 3; }}
printf '%s\\n' "$list" >"$3"
shift 3
exec pg_restore "$@"
"""
_EXTENSIONS_OF_FILE = """
PATH="$2:$PATH"; export PATH
test -r "$1" || { echo "cannot be read" >&2; exit 2; }
pg_restore -l "$1" | sed -n 's/^[0-9]*; [0-9]* [0-9]* EXTENSION - \\([^ ]*\\) *.*/\\1/p'
"""


async def _load_file(bench: Bench, load: LoadContent) -> None:
    """A dump of pg_dump's own formats: pg_restore gives psql nothing to read."""
    path, folder = load.data.path, bench.plan.client_bindir
    look = ("sh", "-c", _EXTENSIONS_OF_FILE, "look", path, folder)
    listed = await bench.step("look-at-the-dump", look, check=False)
    if listed.exit_status != 0:
        raise TargetProblem(
            _("The dump %(path)s cannot be read by pg_restore on the server: %(why)s"),
            code="dump_unreadable",
            remedy=_(
                "Give the path of a dump in custom, directory or tar format (pg_dump -Fc)."
            ),
            path=path,
            why=listed.stderr.strip()[-300:],
        )
    names = [name for name in listed.stdout.split() if name != "plpgsql"]
    refused = sorted(
        set(names) - data_script.EXTENSIONS - data_script.PASSED_OVER_EXTENSIONS
    )
    if refused:
        raise TargetProblem(
            _("The dump needs extensions that are not made for a load: %(names)s."),
            code="extension_refused",
            remedy=_("Make a dump without them (pg_dump --extension, or --schema)."),
            names=", ".join(refused),
        )
    await make_extensions(
        bench,
        [name for name in names if name not in data_script.PASSED_OVER_EXTENSIONS],
    )
    list_file = f"{bench.directory}/load.list"
    restore = ("sh", "-c", _RESTORE, "restore", path, folder, list_file)
    options = ("--no-owner", "--no-privileges", "--no-comments", "-L", list_file)
    argv = (*restore, *options, *connection(bench), "-d", DATABASE, path)
    result = await bench.step("load", argv, check=False, is_private=True)
    if result.exit_status != 0 and "errors ignored on restore" not in result.stderr:
        raise _not_loaded(bench, result)


LOADING = {"pgbench": _load_pgbench, "sql": _load_sql, "file": _load_file}


def _not_loaded(bench: Bench, result: StepResult) -> TargetProblem:
    """By its last error, without the lines that quote the data."""
    errors = [line for line in result.stderr.splitlines() if "ERROR:" in line]
    return TargetProblem(
        _("The data cannot be loaded into PostgreSQL %(version)s: %(error)s"),
        code="data_not_loaded",
        remedy=_("Mend the dump, or leave the version out; try it with psql there."),
        version=str(bench.levels["version"]),
        error=errors[-1].partition("ERROR:")[2].strip()[:300]
        if errors
        else result.exit_status,
    )
