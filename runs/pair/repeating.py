"""A campaign of a BenchLab repeated on this machine, which it does not log in to.

    benchlab-versions --campaign-run 16-and-18 --bindir /usr/lib/postgresql/18/bin

The plan comes from the server, and each run is uploaded there, by the program `benchlab-upload`
that lies beside the installed package: its spool, its tries, and what it knows of the machine.
Further options are that program's. Exit status: 0 all is stored; from 64 on as `benchlab-upload`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.pair.clusters import (
    TAIL,
    Cluster,
    ClusterFailed,
    Installation,
    installed,
    major_of,
    server_account,
)
from runs.pair.command import Parser
from runs.pair.uploading import client
from runs.patterns import re

FLAG = "--campaign-run"
Object = dict[str, Any]


def repeat(arguments: Sequence[str]) -> int:
    """Follow a campaign's plan on this machine and upload each run; the exit status."""
    parser = Parser(
        prog="benchlab-versions",
        usage="%(prog)s --campaign-run SLUG [--bindir FOLDER]... [options of benchlab-upload]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(FLAG, metavar="SLUG", required=True)
    parser.add_argument("--campaign", default="", help="its name on the server")
    parser.add_argument("--bindir", action="append", type=Path, default=[])
    parser.add_argument(
        "--work", metavar="FOLDER", help="where clusters are made (a temporary one)"
    )
    options, others = parser.parse_known_args(arguments)
    upload = client()
    try:
        return _Campaign(upload, options, others).follow()
    except upload.Ending as ending:
        upload._tell(str(ending))
        return int(ending.status)


class _Campaign:
    """A campaign whose plan is followed. Raises the client's Ending."""

    def __init__(
        self, upload: Any, options: argparse.Namespace, others: Sequence[str]
    ) -> None:
        self._upload = upload
        self._name = options.campaign
        # The client wants to know what is run; here it is pgbench, by the plan.
        self._options = upload.parsed(
            [
                "--campaign",
                options.campaign or options.campaign_run,
                *others,
                "--",
                "pgbench",
            ]
        )
        self._server = upload.Server(
            upload.url_of(self._options),
            upload.token_of(self._options),
            tries=self._options.tries,
            timeout=self._options.timeout,
        )
        self._spool = upload.spool_of(self._options)
        self._work = options.work
        try:
            server_account()
        except ClusterFailed as error:
            raise upload.Ending(upload.WRONG_USE, str(error)) from error
        self._plan = self._asked_plan(options.campaign_run)
        self._installed = installed(options.bindir)

    def follow(self) -> int:
        """Measure and upload all runs that this machine can; the exit status."""
        upload, plan = self._upload, self._plan
        cells = {cell["cell"]: cell for cell in plan["cells"]}
        runs = [run for run in plan["order"] if self._is_able(cells[run["cell"]])]
        missing = {
            cell["version"] for cell in cells.values() if not self._is_able(cell)
        }
        if not runs:
            raise upload.Ending(
                upload.WRONG_USE,
                "none of the campaign's versions is here: name their --bindir",
            )
        if missing:
            names = ", ".join(sorted(missing))
            upload._tell(f"no --bindir has PostgreSQL {names}: their runs are left out")
        upload.STOPPING.begin()
        folder = Path(tempfile.mkdtemp(prefix="benchlab-run-", dir=self._work))
        # The servers' account has to enter it.
        folder.chmod(0o711)
        clusters = _Clusters(upload, plan, self._installed, folder)
        status = 0
        try:
            for number, run in enumerate(runs, start=1):
                cell = cells[run["cell"]]
                levels = ", ".join(
                    f"{name} {level}" for name, level in cell["levels"].items()
                )
                upload._tell(f"run {number} of {len(runs)}: {levels}")
                body = self._measured(clusters, cell, run["round"])
                status = self._stored(body) or status
        except ClusterFailed as error:
            raise upload.Ending(upload.UNFINISHED, str(error)) from error
        except upload.Stopped:
            upload._tell(
                "stopped; a run that was not measured to its end is not uploaded"
            )
        finally:
            clusters.remove()
            shutil.rmtree(folder, ignore_errors=True)
        if upload.STOPPING.number:
            upload.STOPPING.end()
        return status

    def _asked_plan(self, slug: str) -> Object:
        upload, server = self._upload, self._server
        try:
            answer = server.get(f"campaigns/{_slug(slug)}/plan/")
        except upload.Away as away:
            message = f"{server.url} cannot be reached ({away}): there is no plan"
            raise upload.Ending(upload.AWAY, message) from away
        if answer.status != 200:
            said = answer.json().get("detail") or answer.status
            raise upload.Ending(upload.REFUSED, f"no plan of {slug}: {said}")
        plan: Object = answer.json()
        return plan

    def _is_able(self, cell: Object) -> bool:
        return major_of(cell["version"]) in self._installed

    def _measured(self, clusters: _Clusters, cell: Object, number: int) -> Object:
        """One run, as the API takes it."""
        upload, plan = self._upload, self._plan
        cluster = clusters.begin(cell)
        try:
            with cluster.reached():
                asked = upload.postgresql(cluster.address)
                upload.STOPPING.check()
                output = upload.run_command(clusters.load_of(cluster, cell))
                upload.STOPPING.check()
        finally:
            clusters.end(cluster, cell)
        here = platform.node()
        levels = {
            name: level for name, level in cell["levels"].items() if name != "version"
        }
        name = self._name or f"{plan['campaign'][:80]}-{_slug(here)[:30]}"
        body: Object = {
            "campaign": name,
            "campaign_title": f"{plan['title'][:140]} ({here[:50]})",
            "scenario": plan["scenario"],
            "tool": "pgbench",
            "levels": levels,
            "started_at": output.started_at,
            "finished_at": output.finished_at,
            "raw": dict(output.files),
            "postgresql": asked,
            "labels": {**upload.labels(self._options), "repeats": plan["campaign"]},
            "round": number,
            **upload._machine(self._options),
        }
        return {
            name: value for name, value in body.items() if value not in (None, "", {})
        }

    def _stored(self, body: Object) -> int:
        """Upload a run, or keep it while the server is away; the exit status of that."""
        upload = self._upload
        path = self._spool.keep(self._server.url, upload._checked(body))
        try:
            with upload.STOPPING.waits():
                upload._send(self._server, self._spool, path)
        except upload.Away as away:
            told: int = upload._tell_away(
                away, self._server, self._spool, self._options
            )
            return told
        return 0 if body["raw"]["exit_status"] == "0" else int(upload.UNFINISHED)


class _Clusters:
    """The clusters of a plan. Cells that only read share one where they can."""

    def __init__(
        self,
        upload: Any,
        plan: Object,
        installations: Mapping[str, Installation],
        folder: Path,
    ) -> None:
        self._upload = upload
        self._plan = plan
        self._installations = installations
        self._folder = folder
        self._made: dict[str, Cluster] = {}
        self._number = 0
        self._script = folder / "script.sql"
        self._script.write_text(plan["script"], encoding="utf-8")

    def begin(self, cell: Object) -> Cluster:
        """A loaded, running and warm cluster for a run of the cell."""
        installation = self._installations[major_of(cell["version"])]
        parts = [str(installation.bindir), cell["settings"], cell["initdb_options"]]
        key = json.dumps(parts, sort_keys=True)
        cluster = self._made.get(key)
        if cluster is None:
            self._number += 1
            cluster = Cluster(installation, self._folder / f"cluster-{self._number}")
            self._made[key] = cluster
            cluster.make(cell["settings"], cell["initdb_options"])
            self._upload.STOPPING.check()
            self._start(cluster)
            self._load(cluster)
        else:
            self._start(cluster)
        self._warm(cluster)
        return cluster

    def end(self, cluster: Cluster, cell: Object) -> None:
        """Stop it. What a run has changed is of no use to the next one."""
        cluster.stop()
        if cell["is_fresh"]:
            self._made = {
                key: other for key, other in self._made.items() if other is not cluster
            }
            cluster.remove()

    def remove(self) -> None:
        """Remove all that there are."""
        for cluster in self._made.values():
            cluster.remove()

    def load_of(self, cluster: Cluster, cell: Object) -> list[str]:
        """The command line of pgbench for a cell: threads are half the clients."""
        clients, parameters = (
            int(cell["levels"].get("clients", 1)),
            self._plan["parameters"],
        )
        threads = 1 if clients % 2 else clients // 2
        options = {
            "-c": clients,
            "-j": threads,
            "-T": parameters["duration"],
            "-s": parameters["scale"],
            "-f": self._script,
        }
        words = [str(word) for option in options.items() for word in option]
        return [self._program(cluster, "pgbench"), "-n", "-r", *words]

    def _start(self, cluster: Cluster) -> None:
        cluster.start()
        self._upload.STOPPING.check()

    def _load(self, cluster: Cluster) -> None:
        scale = str(self._plan["parameters"]["scale"])
        self._run(cluster, "pgbench", ["-i", "-s", scale, *self._plan["load"]])
        self._sql(cluster, "CHECKPOINT")

    def _warm(self, cluster: Cluster) -> None:
        try:
            self._sql(cluster, "CREATE EXTENSION IF NOT EXISTS pg_prewarm")
            for name in ("pgbench_accounts", "pgbench_accounts_pkey"):
                self._sql(cluster, f"SELECT pg_prewarm('{name}')")
        except ClusterFailed:
            self._sql(cluster, "SELECT count(*) FROM pgbench_accounts")

    def _sql(self, cluster: Cluster, text: str) -> None:
        self._run(cluster, "psql", ["-XAtqw", "-v", "ON_ERROR_STOP=1", "-c", text])

    def _run(self, cluster: Cluster, program: str, arguments: Sequence[str]) -> None:
        """Run a client program, which a signal may end at once. Raises ClusterFailed, Stopped."""
        stopping = self._upload.STOPPING
        output = cluster.folder / f"{program}.out"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [self._program(cluster, program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, **cluster.environment()},
                start_new_session=True,
            )
            stopping.child = process
            if stopping.number:
                process.terminate()
            status = process.wait()
            stopping.child = None
        stopping.check()
        if status:
            said = output.read_text(encoding="utf-8", errors="replace").strip()[-TAIL:]
            raise ClusterFailed(f"{program} failed: {said}")

    def _program(self, cluster: Cluster, name: str) -> str:
        cluster_program = cluster.installation.bindir / name
        path = str(cluster_program) if cluster_program.exists() else shutil.which(name)
        if path is None:
            raise ClusterFailed(
                f"there is no {name}, neither in {cluster_program.parent} nor in PATH"
            )
        return path


def _slug(text: str) -> str:
    return re.sub(r"[^-a-zA-Z0-9_]+", "-", text).strip("-") or "machine"
