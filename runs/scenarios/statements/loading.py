"""The data of a load: its role, its extensions, and the ways in which data come."""

from collections.abc import AsyncIterator, Sequence

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
    try:
        await _execute(bench, path)
    finally:
        await bench.run("rm", "-f", path)


async def _execute(bench: Bench, path: str) -> None:
    """Have psql execute a script, whose statements it does not read."""
    result = await bench.step("load", client(bench, path), check=False, is_private=True)
    if result.exit_status != 0:
        raise _not_loaded(bench, result)


# What an ordinary role cannot make, what the database has already, and what a load does without.
_LIST = (
    'pg_restore -l "$1" | grep -v -e " EXTENSION " -e " COMMENT - " -e " SCHEMA - public " '
    '-e " ACL " -e " EVENT TRIGGER " -e " PUBLICATION " -e " SUBSCRIPTION " -e " POLICY " '
    '-e " ROW SECURITY " -e " SERVER " -e " USER MAPPING " -e " FOREIGN "'
)
_WRITE_LIST = f"""
PATH="$2:$PATH"; export PATH
list=$({_LIST}) || {{ echo "no list" >&2; exit 3; }}
printf '%s\\n' "$list" >"$3"
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
    write = ("sh", "-c", _WRITE_LIST, "list", path, folder, list_file)
    await bench.step("list-the-dump", write)
    await _restore(bench, path, list_file)


async def _load_dump(bench: Bench, load: LoadContent) -> None:
    """A dump that was uploaded: a script for psql, or one of pg_dump's own formats."""
    path = f"{bench.directory}/load.dump"
    # A worker that has taken the run over sends it anew, and pg_restore may still read the first.
    await sending.send_pieces(bench, _parts(load), f"{path}.new")
    await bench.run("mv", f"{path}.new", path)
    try:
        if load.data.format == "plain":
            await _execute(bench, path)
        else:
            list_file = f"{bench.directory}/load.list"
            await sending.send_text(bench, load.data.list_text, list_file)
            await _restore(bench, path, list_file)
    finally:
        await bench.run("rm", "-f", path)


async def _parts(load: LoadContent) -> AsyncIterator[bytes]:
    data = load.data
    for number in range(data.first_part, data.first_part + data.parts):
        if load.read_part is None:
            raise load_missing(load.slug)
        try:
            yield await load.read_part(number)
        except KeyError:
            raise load_missing(load.slug) from None


# Of a newer pg_restore or dump, which sets what an older server does not have.
_UNKNOWN_SETTING = "unrecognized configuration parameter"


async def _restore(bench: Bench, path: str, list_file: str) -> None:
    """Restore what a list has, by pg_restore: nothing in it is read by psql."""
    argv = (
        f"{bench.plan.client_bindir}/pg_restore",
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        "-L",
        list_file,
        *connection(bench),
        "-d",
        DATABASE,
        path,
    )
    result = await bench.step("load", argv, check=False, is_private=True)
    if result.exit_status != 0 and has_failed(result.stderr):
        raise _not_loaded(bench, result)


def has_failed(stderr: str) -> bool:
    """Whether pg_restore has not restored something, by its errors.

    It goes on after an error, and what it lacks then would be called slow. A newer pg_restore sets
    what an older server does not know, which changes nothing.
    """
    errors = [
        line for line in stderr.splitlines() if "error: " in line or "ERROR:" in line
    ]
    return not errors or any(_UNKNOWN_SETTING not in line for line in errors)


def load_missing(slug: str) -> TargetProblem:
    """What a run says whose load is gone."""
    return TargetProblem(
        _(
            "The load %(slug)s is not there any more: it was removed, or its time is over."
        ),
        code="load_missing",
        remedy=_("Bring the load again, and queue a new campaign of it."),
        slug=slug,
    )


LOADING = {
    "pgbench": _load_pgbench,
    "sql": _load_sql,
    "dump": _load_dump,
    "file": _load_file,
}


def _not_loaded(bench: Bench, result: StepResult) -> TargetProblem:
    """By its first error, without the lines that quote the data."""
    errors = [
        line
        for line in result.stderr.splitlines()
        if "ERROR:" in line and _UNKNOWN_SETTING not in line
    ]
    return TargetProblem(
        _("The data cannot be loaded into PostgreSQL %(version)s: %(error)s"),
        code="data_not_loaded",
        remedy=_("Mend the dump, or leave the version out; try it with psql there."),
        version=str(bench.levels["version"]),
        error=errors[0].partition("ERROR:")[2].strip()[:300]
        if errors
        else result.exit_status,
    )
