"""Recorded runs as a POSIX shell script that does by hand what BenchLab did over SSH.

The script works in a folder of its own, which it makes and, at its end, removes with every server
that still runs below it. Steps that only looked at the target or read its settings back are left
out: the script knows what they found. So are the monitors and a profile by perf, which ran beside
the load. What was set on the machine by sudo is set back at the end, whatever the end is.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from runs.execution import set_back
from runs.reports.shell_words import Folders, comment

LOOKS = frozenset(("look-for-cluster", "look-for-template", "look-for-pg-prewarm", "read-settings"))
# What ran beside the load, and what was done for it; several machines have their names behind.
BESIDE = ("monitor", "profile", "keep-perf", "set-perf", "check-cpus")
SUDO = "sudo"
# sockaddr_un of Linux holds 108 bytes, the last of which is a null; PostgreSQL's name of a socket.
SOCKET_PATH_BYTES = 107
SOCKET_NAME = "/.s.PGSQL.65535"
# What the record of a long input has in the place of its middle.
_CUT = re.compile(r"^\[\.\.\. \d+ characters \.\.\.\]$", re.MULTILINE)


@dataclass(frozen=True)
class RecordedCommand:
    """A step as it was recorded; `exit_status` and the times are None where they are not known."""

    step: str
    host: str
    argv: tuple[str, ...]
    stdin: str = ""
    exit_status: int | None = 0
    started_at: datetime | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class RecordedRun:
    """The commands of one run on its target.

    `programs` are (version, folder of the binaries) in the order in which the run names them, the
    server's first.
    """

    title: str
    base_dir: str
    programs: tuple[tuple[str, str], ...]
    commands: tuple[RecordedCommand, ...]

    @property
    def performed(self) -> tuple[RecordedCommand, ...]:
        """The commands that do something."""
        return tuple(each for each in self.commands if not _only_looks(each.step))


def shell_script(name: str, title: str, runs: Sequence[RecordedRun], *, address: str = "") -> str:
    """The runs, one after the other. `name` (a slug) becomes that of the default base folder.

    `address` is where the record can be read. Raises ValueError without any command.
    """
    if not any(run.performed for run in runs):
        raise ValueError("nothing has been recorded")
    programs = _programs(runs)
    folders = Folders(
        {run.base_dir: "BASE" for run in runs} | {folder: name for name, folder in programs}
    )
    shared = _shared(runs)
    parts = [
        _head(title, runs, address),
        _variables(name, programs),
        _start(runs, programs),
        *(_run(run, folders, shared) for run in runs if run.performed),
        'echo\necho "Done."\n',
    ]
    return "\n".join(parts)


def _head(title: str, runs: Sequence[RecordedRun], address: str) -> str:
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


def _variables(name: str, programs: Sequence[tuple[str, str]]) -> str:
    lines = [f'BASE=${{BENCHLAB_BASE:-"${{HOME:-/tmp}}/benchlab-{name}"}}']
    nothing = Folders({})
    lines += [f"{name}=${{{name}:-{nothing.word(folder)}}}" for name, folder in programs]
    return "\n".join([*lines, ""])


def _start(runs: Sequence[RecordedRun], programs: Sequence[tuple[str, str]]) -> str:
    """Refuse what cannot work before anything is made; make the folder; promise to clean up."""
    longest = max((len(place) for run in runs for place in _sockets(run)), default=0)
    bindirs = " ".join(f'"${name}"' for name, _folder in programs)
    return f"""\
stop() {{
    echo "$1" >&2
    exit 1
}}

step() {{
    echo
    echo "== $1"
}}

recorded() {{
    [ "$1" -eq "$2" ] || stop "This step ended with exit status $1; recorded is $2."
}}

fresh() {{
    rm -rf "$1"
    mkdir -p "$1"
}}

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
    if [ -z "${{BENCHLAB_KEEP:-}}" ]; then
        rm -rf "$BASE"
    else
        echo "Kept: $BASE"
    fi
    exit "$status"
}}

[ "$(id -u)" -ne 0 ] || stop "PostgreSQL refuses to run as root; take another user."
[ "${{#BASE}}" -le {SOCKET_PATH_BYTES - longest - len(SOCKET_NAME)} ] \
|| stop "Set BENCHLAB_BASE to a shorter path: a socket below $BASE would have too long a name."
for programs in {bindirs}; do
    [ -d "$programs" ] || stop "There is no $programs here; set the variable PG_... to where it is."
done
{_several_hosts(runs)}\
mkdir "$BASE" || stop "Set BENCHLAB_BASE to a folder that does not exist yet and can be made."
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"""


def _setting_back(runs: Sequence[RecordedRun]) -> str:
    """Only where something was set; what tells how it was must not go while it is not so again."""
    if not any(command.step.startswith("keep-") for run in runs for command in run.performed):
        return ""
    words = Folders({}).words(set_back.argv("")[:-1])
    return f"""\
    for run in "$BASE"/runs/*; do
        {words} "$run" || BENCHLAB_KEEP=yes
    done
"""


def _several_hosts(runs: Sequence[RecordedRun]) -> str:
    if len({command.host for run in runs for command in run.performed}) < 2:
        return ""
    return (
        "# The steps ran on several machines; each names its own. All of them on this one is\n"
        "# another measurement, and ports that are equal get into each other's way.\n"
        '[ -n "${BENCHLAB_ONE_MACHINE:-}" ] \\\n'
        '|| stop "Several machines took part: set BENCHLAB_ONE_MACHINE to run all of it here."\n'
    )


def _run(run: RecordedRun, folders: Folders, shared: frozenset[str]) -> str:
    made = [*_places(run), *_sockets(run)]
    lines = [
        "#" * 78,
        comment(run.title),
        f"step {folders.word(run.title)}",
        *(f'mkdir -p "$BASE"{Folders({}).word(place)}' for place in made),
        "",
    ]
    steps = [_step(command, run.base_dir, folders) for command in run.performed]
    gone = " ".join(
        f'"$BASE"{Folders({}).word(place)}' for place in _places(run) if place not in shared
    )
    return "\n".join([*lines, *steps, *([f"rm -rf {gone}\n"] if gone else [])])


def _step(command: RecordedCommand, base_dir: str, folders: Folders) -> str:
    lines = [comment(_told(command)), f"step {folders.word(command.step)}"]
    if _CUT.search(command.stdin):
        lines.append('stop "The input of this step is too long for the record; it is cut there."')
        return "\n".join([*lines, ""])
    emptied = _emptied(command, base_dir)
    if emptied:
        lines.append(f"fresh {folders.word(emptied)}")
    given = folders.here_document(command.stdin) if command.stdin else "</dev/null\n"
    redirection, _newline, document = given.partition("\n")
    expected = f" || recorded $? {command.exit_status}" if command.exit_status else ""
    lines.append(f"{folders.words(command.argv)} {redirection}{expected}")
    return "\n".join([*lines, document])


def _only_looks(step: str) -> bool:
    """Also what ran beside the load: the script's own load would wait for its end."""
    return step in LOOKS or any(step == name or step.startswith(f"{name}-") for name in BESIDE)


def _told(command: RecordedCommand) -> str:
    """The step with its place and times."""
    parts = [command.step, command.host]
    if command.started_at:
        parts.append(f"{command.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    if command.seconds is not None:
        parts.append(f"{command.seconds:.1f} s")
    if command.exit_status is None:
        parts.append("no exit status recorded")
    return ", ".join(parts)


def _emptied(command: RecordedCommand, base_dir: str) -> str:
    """The folder that BenchLab made anew before this step; empty where there is none."""
    data = ""
    if PurePosixPath(command.argv[0]).name == "initdb" and "-D" in command.argv[:-1]:
        data = command.argv[command.argv.index("-D") + 1]
    elif command.step == "restore":
        data = command.argv[-1]
    folder = data.rpartition("/")[0]
    return folder if folder.startswith(f"{base_dir}/clusters/") else ""


def _places(run: RecordedRun) -> list[str]:
    """The folders of runs and clusters that the commands name, below the base: /runs/7-1."""
    found = re.compile(re.escape(run.base_dir) + r"(/(?:runs|clusters)/[^/\s\"'@:,;]+)")
    texts = (text for each in run.performed for text in (*each.argv, each.stdin))
    return sorted({place for text in texts for place in found.findall(text)})


def _sockets(run: RecordedRun) -> list[str]:
    """The folders of Unix sockets, below the base: what follows -h, and -k within pg_ctl's -o."""
    named = re.compile(r'-k "([^"]+)"')
    folders: set[str] = set()
    for command in run.performed:
        pairs = zip(command.argv, command.argv[1:], strict=False)
        folders |= {value for option, value in pairs if option == "-h"}
        folders |= {folder for argument in command.argv for folder in named.findall(argument)}
    base = f"{run.base_dir}/"
    return sorted(each.removeprefix(run.base_dir) for each in folders if each.startswith(base))


def _shared(runs: Iterable[RecordedRun]) -> frozenset[str]:
    """The prepared clusters, which stay for later runs."""
    return frozenset(
        command.argv[-1].removeprefix(run.base_dir)
        for run in runs
        for command in run.performed
        if command.step == "mark-prepared"
    )


def _programs(runs: Iterable[RecordedRun]) -> list[tuple[str, str]]:
    """(variable, folder) of each set of binaries: PG_16_14, and PG_16_14_2 for another of 16.14."""
    named: dict[str, str] = {}
    for version, folder in (program for run in runs for program in run.programs):
        if folder in named.values():
            continue
        plain = name = f"PG_{re.sub(r'[^0-9A-Za-z]+', '_', version)}"
        number = 1
        while name in named:
            number += 1
            name = f"{plain}_{number}"
        named[name] = folder
    return list(named.items())
