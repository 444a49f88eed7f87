"""The frame around the steps of a run's shell script: head, variables, checks and clean-up."""

from collections.abc import Sequence

from runs.execution import set_back
from runs.reports import load_machines
from runs.reports.load_machines import RecordedGenerator
from runs.reports.recorded_runs import RecordedRun, generators_of, sockets_of
from runs.reports.shell_words import Folders, comment

SUDO = "sudo"
# sockaddr_un of Linux holds 108 bytes, the last of which is a null; PostgreSQL's name of a socket.
SOCKET_PATH_BYTES = 107
SOCKET_NAME = "/.s.PGSQL.65535"


def head(title: str, runs: Sequence[RecordedRun], address: str) -> str:
    """What the script is, how it is used, and the shell's options."""
    hosts = sorted({command.host for run in runs for command in run.performed})
    lines = [
        "#!/bin/sh",
        comment(title),
        *([comment(f"Recorded: {address}")] if address else []),
        comment(f"Executed on {', '.join(hosts)}."),
        "#",
        "# Usage: sh SCRIPT, as any user but root, on the machine to measure. Variables:",
        "#   BENCHLAB_BASE   the folder to work in; it must not exist, and is removed at the end",
        "#   BENCHLAB_KEEP   set it to keep the folder",
        "#   PG_*            folders with the programs of PostgreSQL",
        *load_machines.about(generators_of(runs)),
        *_about_sudo(runs),
        "set -eu",
        "umask 077",
        "export LC_ALL=C",
        "",
    ]
    return "\n".join(lines)


def _about_sudo(runs: Sequence[RecordedRun]) -> list[str]:
    if not any(command.argv[0] == SUDO for run in runs for command in run.performed):
        return []
    return [
        "# Some steps need root: let sudo allow these very lines, as the server's page tells.",
    ]


def variables(name: str, programs: Sequence[tuple[str, str]], more: Sequence[str]) -> str:
    """What can be set from outside; `more` are further lines."""
    lines = [f'BASE=${{BENCHLAB_BASE:-"${{HOME:-/tmp}}/benchlab-{name}"}}']
    nothing = Folders({})
    lines += [f"{name}=${{{name}:-{nothing.word(folder)}}}" for name, folder in programs]
    return "\n".join([*lines, *more, ""])


def functions(generators: Sequence[RecordedGenerator]) -> str:
    """The shell's functions that steps use."""
    return """\
stop() {
    echo "$1" >&2
    exit 1
}

step() {
    echo
    echo "== $1"
}

recorded() {
    [ "$1" -eq "$2" ] || stop "This step ended with exit status $1; recorded is $2."
}

fresh() {
    rm -rf "$1"
    mkdir -p "$1"
}
""" + (f"\n{load_machines.FUNCTIONS}" if generators else "")


def clean_up(
    runs: Sequence[RecordedRun],
    programs: Sequence[tuple[str, str]],
    generators: Sequence[RecordedGenerator],
) -> str:
    """In any case: stop the servers below the folder, and remove it, on all machines."""
    elsewhere = load_machines.clean_up(generators, sets_back=_sets(runs))
    return f"""\
clean_up() {{
    status=$?
    trap - EXIT
    trap '' INT TERM
{_setting_back(runs)}\
    for data in "$BASE"/clusters/*/data; do
        if [ -f "$data/postmaster.pid" ]; then
            "${programs[0][0]}"/pg_ctl stop -w -D "$data" -m fast >/dev/null || true
        fi
    done
{elsewhere}\
    if [ -z "${{BENCHLAB_KEEP:-}}" ]; then
        rm -rf "$BASE"
    else
        echo "Kept: $BASE"
    fi
    exit "$status"
}}
"""


def checks(runs: Sequence[RecordedRun], programs: Sequence[tuple[str, str]]) -> str:
    """Refuse what cannot work before anything is created."""
    longest = max((len(place) for run in runs for place in sockets_of(run)), default=0)
    bindirs = " ".join(f'"${name}"' for name, _folder in programs)
    return f"""\
[ "$(id -u)" -ne 0 ] || stop "PostgreSQL refuses to run as root; take another user."
[ "${{#BASE}}" -le {SOCKET_PATH_BYTES - longest - len(SOCKET_NAME)} ] \
|| stop "Set BENCHLAB_BASE to a shorter path: a socket below $BASE would have too long a name."
for programs in {bindirs}; do
    [ -d "$programs" ] || stop "There is no $programs here; set the variable PG_... to where it is."
done
{_several_hosts(runs)}"""


def begin(generators: Sequence[RecordedGenerator]) -> str:
    """Create the folders, and register the clean-up."""
    return f"""\
mkdir "$BASE" || stop "Set BENCHLAB_BASE to a folder that does not exist yet and can be made."
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
{load_machines.begin(generators)}"""


def _setting_back(runs: Sequence[RecordedRun]) -> str:
    """Only if something was set; the stored original must stay until it is restored."""
    if not _sets(runs):
        return ""
    words = Folders({}).words(set_back.argv("")[:-1])
    return f"""\
    for run in "$BASE"/runs/*; do
        {words} "$run" || BENCHLAB_KEEP=yes
    done
"""


def _sets(runs: Sequence[RecordedRun]) -> bool:
    return any(command.step.startswith("keep-") for run in runs for command in run.performed)


def _several_hosts(runs: Sequence[RecordedRun]) -> str:
    hosts = {each.host for run in runs for each in run.performed if not run.machine_of(each.step)}
    if len(hosts) < 2:
        return ""
    return (
        "# The steps ran on several machines; each names its own. All of them on this one is\n"
        "# another measurement, and ports that are equal get into each other's way.\n"
        '[ -n "${BENCHLAB_ONE_MACHINE:-}" ] \\\n'
        '|| stop "Several machines took part: set BENCHLAB_ONE_MACHINE to run all of it here."\n'
    )
