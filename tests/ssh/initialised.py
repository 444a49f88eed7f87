"""Clusters that are copied from what was made before: by initdb, or by a whole load.

Almost every test here makes a cluster, and initdb takes half a second of a processor. PostgreSQL's
own tests copy a template as well (INITDB_TEMPLATE). Everything else in the folder of programs is
the original.
"""

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from benchlab.embedded.account import Account
from runs.execution.clusters.postgres import Cluster
from runs.execution.clusters.preparing import Preparing, replace_folder
from runs.execution.plan import RunPlan

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
# By the shell itself: each program takes as long as to copy a part of the cluster.
key=
for word in "$@" "${{LANG:-}}" "${{LC_ALL:-}}"; do key="$key $word"; done
case $key in
*/*) exec "$initdb" -D "$data" "$@" ;;
esac
[ ${{#key}} -le 250 ] || exec "$initdb" -D "$data" "$@"
if [ ! -d "$kept/$key" ]; then
    draft=$(mktemp -d "$kept/draft-XXXXXX")
    "$initdb" -D "$draft/data" "$@"
    # An empty segment of WAL, almost half of a new cluster, becomes a hole.
    cp -a --sparse=always "$draft/data" "$draft/kept"
    mv -T "$draft/kept" "$kept/$key" 2>/dev/null || true
    rm -rf "$draft"
fi
# With the permissions that initdb gave it.
[ -e "$data" ] || [ ! -d "${{data%/*}}" ] || exec cp -a "$kept/$key" "$data"
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
        SCRIPT.format(
            initdb=shlex.quote(str(bindir / "initdb")), kept=shlex.quote(str(kept))
        )
    )
    initdb.chmod(0o755)


def remember_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run copy the cluster that a run before has loaded in the same way.

    As the runs of a campaign do whose cluster is shared: then loading is no part of a run.
    """
    make = Preparing._make

    async def remembered(self: Preparing, cluster: Cluster, *, is_shared: bool) -> None:
        kept = folder / f"loaded-{_digest(self.bench.plan)}"
        if not kept.exists():
            await make(self, cluster, is_shared=is_shared)
            _keep(Path(cluster.data), kept)
            return
        await replace_folder(self.bench.database, cluster.directory)
        if not Path(cluster.data).exists():  # or another worker has begun the run
            subprocess.run(["cp", "-a", str(kept), cluster.data], check=True)
        if is_shared:
            await self.share(cluster)

    monkeypatch.setattr(Preparing, "_make", remembered)


def _digest(plan: RunPlan) -> str:
    """Of all that a load may depend on."""
    given = {**plan.parameters, **plan.levels}
    told = {
        name: each
        for name, each in given.items()
        if name not in {"duration", "clients"}
    }
    clusters = [(each.name, each.role, each.origin) for each in plan.clusters]
    programs = (plan.bindir, plan.client_bindir)
    load = (programs, plan.settings, plan.initdb_options, plan.scenario, told, clusters)
    return hashlib.sha256(repr(load).encode()).hexdigest()[:8]


def _keep(data: Path, kept: Path) -> None:
    """Copy a stopped cluster, but for one whose parts lie elsewhere."""
    if (data / "pg_wal").is_symlink() or any((data / "pg_tblspc").iterdir()):
        return
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=kept.parent))
    subprocess.run(
        ["cp", "-a", "--sparse=always", str(data), str(draft / "data")], check=True
    )
    with contextlib.suppress(OSError):  # another process has made it
        (draft / "data").rename(kept)
    shutil.rmtree(draft)
