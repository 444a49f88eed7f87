"""A bin folder whose initdb copies a cluster that it made before with the same options.

Almost every test here makes a cluster, and initdb takes half a second of a processor. PostgreSQL's
own tests copy a template as well (INITDB_TEMPLATE). Everything else in the folder is the original.
"""

import shlex
from pathlib import Path

from benchlab.embedded.account import Account

# Options that lead outside of the data folder, or print something else, go to initdb itself.
SCRIPT = """#!/bin/sh
# Usage as initdb's, with `-D FOLDER` first.
set -eu
initdb={initdb}
kept={kept}
case "${{1:-}} $*" in
*waldir*|*-X*) exec "$initdb" "$@" ;;
"-D "*) ;;
*) exec "$initdb" "$@" ;;
esac
data=$2
shift 2
key=$(printf '%s\\n' "$@" "${{LANG:-}}" "${{LC_ALL:-}}" | cksum | tr ' ' -)
if [ ! -d "$kept/$key" ]; then
    draft=$(mktemp -d "$kept/draft-XXXXXX")
    "$initdb" -D "$draft/data" "$@"
    # An empty segment of WAL, almost half of a new cluster, becomes a hole.
    cp -a --sparse=always "$draft/data" "$draft/kept"
    mv -T "$draft/kept" "$kept/$key" 2>/dev/null || true
    rm -rf "$draft"
fi
mkdir -p "$data"
[ -z "$(ls -A "$data")" ] || exec "$initdb" -D "$data" "$@"
chmod 700 "$data"
cp -a "$kept/$key/." "$data/"
"""


def quick_bindir(bindir: Path, folder: Path, account: Account) -> Path:
    """Make the bin folder below `folder`, which the account can enter."""
    kept = folder / f"initialised-{bindir.parent.name}"
    kept.mkdir()
    account.own(kept)
    quick = folder / f"quick-{bindir.parent.name}" / "bin"
    quick.mkdir(parents=True)
    for program in bindir.iterdir():
        if program.name != "initdb":
            (quick / program.name).symlink_to(program)
    initdb = quick / "initdb"
    initdb.write_text(
        SCRIPT.format(initdb=shlex.quote(str(bindir / "initdb")), kept=shlex.quote(str(kept)))
    )
    initdb.chmod(0o755)
    return quick
