"""Uploads what was measured: a pair as `benchlab-upload --pair` sends it, or all versions.

Whatever is sent goes through that program, which lies beside the installed package: its spool, its
tries, and what it knows of the machine, the CI and the commits.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from runs.pair.clusters import Cluster
from runs.pair.figures import SECONDS, Readings
from runs.pair.measuring import BASE, HEAD, Execution, Rounds

# In the wheel, and in the repository.
PROGRAMS = ("benchlab_upload.py", "script/benchlab-upload")
# The tool of what prints no figures that are known: its time is one.
LINES = "lines"


class UploadFailed(Exception):
    """The pair cannot be uploaded; the message says why, and where it waits."""


class Target(NamedTuple):
    """Where a pair goes. The server and its token are in the environment."""

    campaign: str
    scenario: str = ""
    revision: str = ""
    base_revision: str = ""


class _Upload:
    """Runs on their way to a server.

    Made before anything is measured: raises UploadFailed where the server, the token or a commit is
    not known.
    """

    def __init__(self, target: Target, words: Sequence[str]) -> None:
        self._client = client()
        arguments = ["--campaign", target.campaign]
        for name in ("scenario", "revision", "base_revision"):
            value = getattr(target, name)
            if value:
                arguments += [f"--{name.replace('_', '-')}", value]
        try:
            self._options = self._client.parsed([*arguments, *words])
            self._server = self._client.Server(
                self._client.url_of(self._options),
                self._client.token_of(self._options),
                tries=self._options.tries,
                timeout=self._options.timeout,
            )
            self._begin()
        except self._client.Ending as ending:
            raise UploadFailed(str(ending)) from ending

    def _begin(self) -> None:
        """What else has to be known before anything is measured."""

    def _send(self, bodies: Iterable[Any]) -> str:
        """Send runs in the order in which they were measured; the address of their campaign.

        They are kept on disk first. Raises UploadFailed where the server is away or refuses one.
        """
        spool = self._client.spool_of(self._options)
        try:
            paths = [spool.keep(self._server.url, body) for body in bodies]
            stored = self._client.send_all(self._server, spool, paths)
        except self._client.Away as away:
            message = f"{self._server.url} cannot be reached ({away}): benchlab-upload --send-spool"
            raise UploadFailed(
                f"{message} sends what is kept in {spool.folder}"
            ) from away
        except self._client.Ending as ending:
            raise UploadFailed(str(ending)) from ending
        return f"{self._server.url}/campaigns/{stored['campaign']}/"

    def _output(self, execution: Execution, tool: str) -> Any:
        """What is sent of an execution: what it printed, or its own figures."""
        stdout = execution.stdout if tool else _lines(execution)
        ended_at = execution.began_at + execution.seconds
        return self._client.Output(
            {
                "stdout": stdout.decode(errors="replace"),
                "stderr": execution.stderr.decode(errors="replace"),
                "exit_status": "0",
            },
            _time(execution.began_at),
            _time(ended_at),
        )


class Upload(_Upload):
    """A pair on its way to a server."""

    def __init__(self, target: Target, commands: dict[str, str]) -> None:
        pair = [f"{side}={line}" for side, line in commands.items()]
        super().__init__(target, ["--pair", *pair])

    def _begin(self) -> None:
        self._uploads = self._client.PairUploads(self._options)

    def send(self, rounds: Rounds, readings: Readings) -> str:
        """Send all whole rounds; the address of their campaign. Raises UploadFailed."""
        self._options.tool = readings.tool or LINES
        measured = [
            (execution, side, number)
            for number in range(len(rounds))
            for side, executions in ((BASE, rounds.base), (HEAD, rounds.head))
            for execution in (executions[number],)
        ]
        measured.sort(key=lambda run: run[0].began_at)
        return self._send(
            self._uploads.body(side, self._output(execution, readings.tool), number)
            for execution, side, number in measured
        )


class VersionsUpload(_Upload):
    """A command's executions on every version on their way to a server, as a campaign."""

    def __init__(self, target: Target, command: str) -> None:
        super().__init__(target, ["--", command])
        self._servers: dict[str, Any] = {}

    def _begin(self) -> None:
        job = (self._options.job or self._client.job())[:180]
        self._options.job = f"{job}/versions-{uuid.uuid4().hex[:8]}"

    def ask(self, cluster: Cluster) -> None:
        """Ask a running server for its version and its settings, which go with its runs."""
        with cluster.reached():
            asked = self._client.postgresql(cluster.address)
        installation = cluster.installation
        self._servers[installation.major] = {"version": installation.version, **asked}

    def send(self, executions: Mapping[str, Sequence[Execution]], tool: str) -> str:
        """Send the executions by major version; the address of their campaign.

        Raises UploadFailed.
        """
        self._options.tool = tool or LINES
        measured = [
            (execution, major, number)
            for major, executions_of_version in executions.items()
            for number, execution in enumerate(executions_of_version)
        ]
        measured.sort(key=lambda run: run[0].began_at)
        return self._send(self._body(*run, tool=tool) for run in measured)

    def _body(self, execution: Execution, major: str, number: int, *, tool: str) -> Any:
        output = self._output(execution, tool)
        body = self._client._body(self._options, output, self._servers[major])
        return self._client._checked({**body, "round": number})


def client() -> Any:
    """The program `benchlab-upload` as a module."""
    root = Path(__file__).parents[2]
    path = next(root / name for name in PROGRAMS if (root / name).is_file())
    loader = SourceFileLoader("benchlab_upload", str(path))
    module = ModuleType(loader.name)
    loader.exec_module(module)
    return module


def _lines(execution: Execution) -> bytes:
    figures = (
        f"{SECONDS}={execution.seconds:.6f} s lower",
        f"cpu_seconds={execution.cpu_seconds:.6f} s lower",
    )
    return ("\n".join(figures) + "\n").encode()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
