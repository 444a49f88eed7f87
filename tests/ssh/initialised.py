"""A bin folder whose initdb copies a cluster that it made before with the same options.

Almost every test here makes a cluster, and initdb takes half a second of a processor. PostgreSQL's
own tests copy a template as well (INITDB_TEMPLATE). Everything else in the folder is the original.
"""

import hashlib
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from benchlab.embedded.account import Account

# Options that lead outside of the data folder, or print something else, go to initdb itself.
SCRIPT = """#!/bin/sh
# Usage as initdb's, with `-D FOLDER` first.
set -eu
initdb={initdb}
kept={kept}
# Another account could not read what is kept.
[ -w "$kept" ] || exec "$initdb" "$@"
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
    """The bin folder, made once below `folder`, which the account can enter."""
    made = folder / f"quick-{hashlib.sha256(os.fsencode(bindir)).hexdigest()[:8]}"
    package, version, name = bindir.parts[-3:]
    if not made.exists():
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder))
        draft.chmod(0o755)
        _fill(draft / package / version, bindir, kept=made / "kept")
        (draft / "kept").mkdir()
        account.own(draft / "kept")
        # The programs of a wheel find their libraries next to its folder.
        for libraries in bindir.parents[2].glob("*.libs"):
            (draft / libraries.name).symlink_to(libraries)
        try:
            draft.rename(made)
        except OSError:  # another process has made it
            shutil.rmtree(draft)
    return made / package / version / name


def _fill(home: Path, bindir: Path, *, kept: Path) -> None:
    quick = home / bindir.name
    quick.mkdir(parents=True)
    for other in bindir.parent.iterdir():
        if other != bindir:
            (home / other.name).symlink_to(other)
    for program in bindir.iterdir():
        (quick / program.name).symlink_to(program)
    # An inspection registers the folder in which the file of `postgres` itself is.
    (quick / "postgres").unlink()
    shutil.copy2(bindir / "postgres", quick / "postgres")
    initdb = quick / "initdb"
    initdb.unlink()
    initdb.write_text(
        SCRIPT.format(initdb=shlex.quote(str(bindir / "initdb")), kept=shlex.quote(str(kept)))
    )
    initdb.chmod(0o755)
