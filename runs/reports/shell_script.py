"""Recorded runs as a POSIX shell script that repeats by hand what BenchLab did over SSH.

The script works in its own folder, which it creates and, at its end, removes with every server
that still runs below it. Steps that only inspected the target or read its settings are left
out: the script knows their results. So are monitors and a profile by perf, which ran during
the load. What was set on the machine with sudo is restored at the end in any case. Steps of
load generators go there by ssh (`load_machines`).
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC
from pathlib import PurePosixPath

from runs.execution.machine import treating
from runs.reports import load_machines
from runs.reports.load_machines import RecordedGenerator
from runs.reports.recorded_runs import (
    RecordedCommand,
    RecordedRun,
    generators_of,
    only_looks,
    programs_of,
    sockets_of,
    sources_of,
)
from runs.reports.shell_words import Folders, comment

_ABOUT_SUDO = (
    "# Some steps need root: let sudo allow exactly these lines, "
    "as the server's page shows."
)
# sockaddr_un of Linux holds 108 bytes, the last of which is a null; PostgreSQL's name of a socket.
SOCKET_PATH_BYTES = 107
SOCKET_NAME = "/.s.PGSQL.65535"


def head(title: str, runs: Sequence[RecordedRun], address: str) -> str:
    """What the script is, how it is used, and the shell's options."""
    hosts = sorted({command.host for run in runs for command in run.performed})
    uses_sudo = any(
        command.argv[0] == "sudo" for run in runs for command in run.performed
    )
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
        *([_ABOUT_SUDO] if uses_sudo else []),
        "set -eu",
        "umask 077",
        "export LC_ALL=C",
        "",
    ]
    return "\n".join(lines)


def variables(
    name: str, programs: Sequence[tuple[str, str]], further_lines: Sequence[str]
) -> str:
    """What can be set from outside; `further_lines` are further lines."""
    lines = [f'BASE=${{BENCHLAB_BASE:-"${{HOME:-/tmp}}/benchlab-{name}"}}']
    nothing = Folders({})
    lines += [
        f"{name}=${{{name}:-{nothing.word(folder)}}}" for name, folder in programs
    ]
    return "\n".join([*lines, *further_lines, ""])


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
    longest = max(
        (len(folder) for run in runs for folder in sockets_of(run)), default=0
    )
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
    words = Folders({}).words(treating.argv_to_set_back("")[:-1])
    return f"""\
    for run in "$BASE"/runs/*; do
        {words} "$run" || BENCHLAB_KEEP=yes
    done
"""


def _sets(runs: Sequence[RecordedRun]) -> bool:
    return any(
        command.step.startswith("keep-") for run in runs for command in run.performed
    )


def _several_hosts(runs: Sequence[RecordedRun]) -> str:
    hosts = {
        recorded_command.host
        for run in runs
        for recorded_command in run.performed
        if not run.machine_of(recorded_command.step)
    }
    if len(hosts) < 2:
        return ""
    return (
        "# The steps ran on several machines; each names its own. All of them on this one is\n"
        "# another measurement, and ports that are equal get into each other's way.\n"
        '[ -n "${BENCHLAB_ONE_MACHINE:-}" ] \\\n'
        '|| stop "Several machines took part: set BENCHLAB_ONE_MACHINE to run all of it here."\n'
    )


# Replaces the middle of a long input in the record.
_TOO_LONG = (
    'stop "The input of this step is too long for the record; it is cut there."\n'
)
_FOR_THE_LOAD = (
    "# The role's password, made for this run: here, and for the load's machines."
)
_CUT = re.compile(r"^\[\.\.\. \d+ characters \.\.\.\]$", re.MULTILINE)


def shell_script(
    name: str, title: str, runs: Sequence[RecordedRun], *, address: str = ""
) -> str:
    """The runs, one after the other. `name` (a slug) becomes that of the default base folder.

    `address` is that of the record. Raises ValueError without any command.
    """
    if not any(run.performed for run in runs):
        raise ValueError("nothing has been recorded")
    programs = programs_of(runs)
    generators, sources = generators_of(runs), sources_of(runs)
    folders = Folders(
        {run.base_dir: "BASE" for run in runs}
        | {folder: name for name, folder in programs}
        | {
            recorded_generator.address_of_database: "DB_HOST"
            for recorded_generator in generators
        }
        | {
            address: f"ADMIT_{number}"
            for number, address in enumerate(sources, start=1)
        }
    )
    # The prepared clusters, which stay for later runs.
    shared = frozenset(
        folder
        for run in runs
        for command in run.performed
        if command.step == "mark-prepared"
        for folder in _folders_in(command.argv, run.base_dir)
    )
    sections = [
        head(title, runs, address),
        variables(name, programs, load_machines.variables(name, generators, sources)),
        functions(generators),
        clean_up(runs, programs, generators),
        checks(runs, programs),
        begin(generators),
        *(_run(run, folders, shared) for run in runs if run.performed),
        'echo\necho "Done."\n',
    ]
    return "\n".join(sections)


def _run(run: RecordedRun, folders: Folders, shared: frozenset[str]) -> str:
    folders_named = [*_places(run), *sockets_of(run)]
    lines = [
        "#" * 78,
        comment(run.title),
        f"step {folders.word(run.title)}",
        *(f'mkdir -p "$BASE"{Folders({}).word(folder)}' for folder in folders_named),
        "",
    ]
    steps = _steps(run, folders)
    gone = " ".join(
        f'"$BASE"{Folders({}).word(folder)}'
        for folder in _places(run)
        if folder not in shared
    )
    return "\n".join([*lines, *steps, *([f"rm -rf {gone}\n"] if gone else [])])


def _steps(run: RecordedRun, folders: Folders) -> list[str]:
    """On all machines; loads of several machines are started together."""
    lines: list[str] = []
    loads: list[tuple[RecordedGenerator, str, int]] = []
    for command in run.performed:
        machine = run.machine_of(command.step)
        is_load = machine is not None and load_machines.is_load(command.step)
        if loads and not is_load:
            lines.append(load_machines.wait_for(loads))
            loads = []
        if machine is not None and _FOR_THE_LOAD not in lines:
            lines += [_FOR_THE_LOAD, _password(run, folders)]
        lines += [comment(_heading(command)), f"step {folders.word(command.step)}"]
        if _CUT.search(command.stdin):
            lines.append(_TOO_LONG)
        elif machine is None:
            lines.append(_here(command, run.base_dir, folders))
        else:
            lines.append(_there(command, machine))
            if is_load:
                loads.append((machine, command.step, command.exit_status or 0))
    return [*lines, *([load_machines.wait_for(loads)] if loads else [])]


def _there(command: RecordedCommand, machine: RecordedGenerator) -> str:
    """A step as executed on another machine."""
    stdin = (
        machine.folders.here_document(command.stdin)
        if command.stdin
        else "</dev/null\n"
    )
    script = f"{machine.folders.words(command.argv)} {stdin}"
    if load_machines.is_load(command.step):
        return load_machines.begin_load(machine, command.step, script)
    expected = f" || recorded $? {command.exit_status}" if command.exit_status else ""
    return machine.wrap_script(script, after=expected)


def _password(run: RecordedRun, folders: Folders) -> str:
    """The psql of the run's last query before the load."""
    first_index = next(
        i
        for i, recorded_command in enumerate(run.commands)
        if _is_there(run, recorded_command)
    )
    psql = [
        recorded_command
        for recorded_command in run.commands[:first_index]
        if recorded_command.argv[0].endswith("/psql")
    ]
    hba = next(
        (
            recorded_command.stdin
            for recorded_command in run.commands
            if recorded_command.step == load_machines.ADMIT
        ),
        "",
    )
    passfiles = {
        machine.name: argument.removeprefix("PGPASSFILE=")
        for recorded_command in run.performed
        for argument in recorded_command.argv
        if argument.startswith("PGPASSFILE=")
        and (machine := run.machine_of(recorded_command.step))
    }
    return load_machines.password(
        run.generators,
        passfiles,
        psql=folders.words(psql[-1].argv) if psql else "false",
        encryption=load_machines.encryption(hba, run.programs[0][0]),
    )


def _is_there(run: RecordedRun, command: RecordedCommand) -> bool:
    return run.machine_of(command.step) is not None and not only_looks(command.step)


def _here(command: RecordedCommand, base_dir: str, folders: Folders) -> str:
    emptied = _emptied(command, base_dir)
    fresh = f"fresh {folders.word(emptied)}\n" if emptied else ""
    stdin = folders.here_document(command.stdin) if command.stdin else "</dev/null\n"
    redirection, _newline, document = stdin.partition("\n")
    expected = f" || recorded $? {command.exit_status}" if command.exit_status else ""
    return f"{fresh}{folders.words(command.argv)} {redirection}{expected}\n{document}"


def _heading(command: RecordedCommand) -> str:
    heading_parts = [command.step, command.host]
    if command.started_at:
        heading_parts.append(
            f"{command.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
    if command.seconds is not None:
        heading_parts.append(f"{command.seconds:.1f} s")
    if command.exit_status is None:
        heading_parts.append("no exit status recorded")
    return ", ".join(heading_parts)


def _emptied(command: RecordedCommand, base_dir: str) -> str:
    """The folder that BenchLab emptied before this step; empty if there is none."""
    data = ""
    if PurePosixPath(command.argv[0]).name == "initdb" and "-D" in command.argv[:-1]:
        data = command.argv[command.argv.index("-D") + 1]
    elif command.step == "restore":
        data = command.argv[-1]
    folder = data.rpartition("/")[0]
    return folder if folder.startswith(f"{base_dir}/clusters/") else ""


def _places(run: RecordedRun) -> list[str]:
    """The folders of runs and clusters that the commands name, below the base: /runs/7-1."""
    texts = (
        text
        for recorded_command in run.performed
        for text in (*recorded_command.argv, recorded_command.stdin)
    )
    return sorted(_folders_in(texts, run.base_dir))


def _folders_in(texts: Iterable[str], base_dir: str) -> set[str]:
    folder_pattern = re.compile(
        re.escape(base_dir) + r"(/(?:runs|clusters)/[^/\s\"'@:,;]+)"
    )
    return {folder for text in texts for folder in folder_pattern.findall(text)}
