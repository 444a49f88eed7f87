"""The part of a run's shell script that works on the load generators.

The script runs on the database's machine, and sends other machines' commands through ssh to `sh -s`
there. A password is created for the run; it only goes through pipes, into a PGPASSFILE.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runs.execution.machine import treating
from runs.reports.shell_words import Folders

ADMIT = "admit-generators"
_LOAD = "pgbench-"
_ADMITTED = re.compile(r"^host \S+ \S+ (\S+) (\S+)$", re.MULTILINE)
_NOTHING = Folders({})

FUNCTIONS = """\
# Run the script on standard input on a machine. No word of it, nor the password, is an argument.
on() {
    machine=$1
    eval "destination=\\$$machine options=\\$${machine}_SSH"
    eval "base=\\$${machine}_BASE pg=\\$${machine}_PG"
    {
        echo "set -eu; umask 077; export LC_ALL=C"
        echo "BASE='$base' PG='$pg' DB_HOST='$DB_HOST' PASSWORD='${PASSWORD:-}'"
        echo 'case $BASE in /*) ;; *) BASE=$HOME/$BASE ;; esac'
        cat
    } | $BENCHLAB_SSH $options "$destination" 'sh -s'
}
"""
_FOR_THE_ROLE = """\
step password
PASSWORD=$(head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \\n')
{{
    echo "SET log_statement = 'none'; SET log_min_duration_statement = -1;"
    echo "SET log_min_error_statement = 'panic'; SET password_encryption = '{encryption}';"
    printf "ALTER ROLE benchlab PASSWORD '%s';\\n" "$PASSWORD"
}} | {psql}
"""


@dataclass(frozen=True)
class RecordedGenerator:
    """A load generator, by its name in the run.

    How BenchLab logs in there is not included, since scripts are for everybody. `bindir` is the
    folder of its pgbench; `address_of_database` is the database's address as seen from there.
    """

    name: str
    base_dir: str
    bindir: str
    address_of_database: str

    @property
    def variable(self) -> str:
        """The script's variable for its address."""
        return self.name.upper()

    @property
    def folders(self) -> Folders:
        """The variables that its steps have there."""
        return Folders(
            {
                self.base_dir: "BASE",
                self.bindir: "PG",
                self.address_of_database: "DB_HOST",
            }
        )

    def performs(self, step: str) -> bool:
        """Whether a step of that name ran there."""
        return step.endswith(f"-{self.name}")

    def wrap_script(self, script: str, *, after: str = "") -> str:
        """The script as one that runs there; `after` follows on the line of the call."""
        redirection, _newline, document = _NOTHING.here_document(script).partition("\n")
        return f"on {self.variable} {redirection}{after}\n{document}"


def admitted(hba: str) -> list[str]:
    """The addresses that pg_hba.conf lets in."""
    return [address for address, _method in _ADMITTED.findall(hba)]


def about(generators: Sequence[RecordedGenerator]) -> list[str]:
    """The description of the variables in the script's head."""
    if not generators:
        return []
    return [
        "#   DB_HOST         this machine's address, as the load's machines reach it",
        "#   LOAD1, ...      the machines from which load comes, as ssh names them: user@host",
        "#                   (BenchLab does not disclose how it logs in, so set each of them);",
        "#                   LOAD1_SSH: options of ssh, LOAD1_BASE: a folder there that does not",
        "#                   exist, LOAD1_PG: the folder of its pgbench",
        "#   ADMIT_1, ...    their addresses as PostgreSQL sees them, for pg_hba.conf",
    ]


def variables(
    name: str, generators: Sequence[RecordedGenerator], addresses: Sequence[str]
) -> list[str]:
    """The addresses of the machines; each can be set from outside."""
    if not generators:
        return []
    lines = [
        "BENCHLAB_SSH=${BENCHLAB_SSH:-ssh}",
        _variable("DB_HOST", generators[0].address_of_database),
    ]
    for generator in generators:
        lines += [
            (
                f"{generator.variable}=${{{generator.variable}:?"
                f"set it to user@host of {generator.name}}}"
            ),
            _variable(f"{generator.variable}_SSH", ""),
            _variable(
                f"{generator.variable}_BASE", f"benchlab-{name}-{generator.name}"
            ),
            _variable(f"{generator.variable}_PG", generator.bindir),
        ]
    lines += [
        _variable(f"ADMIT_{number}", address)
        for number, address in enumerate(addresses, start=1)
    ]
    return lines


def begin(generators: Sequence[RecordedGenerator]) -> str:
    """Create a folder on each machine, to be removed at the end."""
    if not generators:
        return ""
    names = " ".join(generator.variable for generator in generators)
    return f"""\
for machine in {names}; do
    on "$machine" <<'END_OF_INPUT' || stop "Look at $machine, ${{machine}}_BASE, ${{machine}}_PG."
[ -d "$PG" ] || {{ echo "There is no $PG." >&2; exit 1; }}
mkdir "$BASE"
END_OF_INPUT
    MACHINES="${{MACHINES:-}} $machine"
done
"""


def clean_up(generators: Sequence[RecordedGenerator], *, sets_back: bool) -> str:
    """Remove the folders; if something was set on a machine, only after it was restored."""
    if not generators:
        return ""
    words = _NOTHING.words(treating.argv_to_set_back("")[:-1])
    back = (
        f'for run in "$BASE"/runs/*; do {words} "$run" || exit 1; done\n'
        if sets_back
        else ""
    )
    return f"""\
    for machine in ${{MACHINES:-}}; do
        [ -z "${{BENCHLAB_KEEP:-}}" ] || break
        on "$machine" <<'END_OF_INPUT' || echo "Left on $machine." >&2
{back}rm -rf "$BASE"
END_OF_INPUT
    done
"""


def password(
    generators: Iterable[RecordedGenerator],
    passfiles: dict[str, str],
    *,
    psql: str,
    encryption: str,
) -> str:
    """Give the role a password, and leave it on each machine in its `passfiles` (by name)."""
    commands = [_FOR_THE_ROLE.format(psql=psql, encryption=encryption)]
    for generator in generators:
        if path := passfiles.get(generator.name):
            word = generator.folders.word(path)
            keep = f"mkdir -p {generator.folders.word(path.rpartition('/')[0])}\n"
            commands.append(
                generator.wrap_script(
                    keep + f"printf '*:*:*:*:%s\\n' \"$PASSWORD\" >{word}\n"
                )
            )
    return "".join(commands)


def is_load(step: str) -> bool:
    """Whether a step generates load, which all machines do at the same time."""
    return step.startswith(_LOAD)


def wait_for(loads: Sequence[tuple[RecordedGenerator, str, int]]) -> str:
    """Wait for the loads (machine, step, exit status), and show what each printed."""
    lines = []
    for generator, step, status in loads:
        out = f'"$BASE"/{_NOTHING.word(step)}.out'
        lines += [f'wait "${generator.name}" || recorded $? {status}', f"cat {out}"]
    return "\n".join([*lines, ""])


def begin_load(generator: RecordedGenerator, step: str, script: str) -> str:
    """Start the load without waiting for its end."""
    out = f' >"$BASE"/{_NOTHING.word(step)}.out 2>&1 &'
    return f"{generator.wrap_script(script, after=out)}{generator.name}=$!\n"


def encryption(hba: str, version: str) -> str:
    """The value of password_encryption for the method in pg_hba.conf."""
    methods = {method for _address, method in _ADMITTED.findall(hba)}
    if "scram-sha-256" in methods:
        return "scram-sha-256"
    return "md5" if int(version.partition(".")[0]) >= 10 else "on"


def _variable(name: str, value: str) -> str:
    return f"{name}=${{{name}:-{_NOTHING.word(value)}}}"
