"""What must not change on a target: a foreign PostgreSQL and files outside the base folder."""

import hashlib
import subprocess
from pathlib import Path

from benchlab.embedded.account import Account

FILL = "CREATE TABLE canary AS SELECT g, md5(g::text) FROM generate_series(1, 10000) g; CHECKPOINT"
LOOK = "SELECT pg_postmaster_start_time(), md5(string_agg(c::text, ',' ORDER BY g)) FROM canary c"
FOREIGN_BYTES = 100_000


class Canary:
    """A running cluster, and files, of the very account that BenchLab logs in as."""

    def __init__(self, folder: Path, bindir: Path, account: Account) -> None:
        self._folder, self._bindir, self._account = folder, bindir, account
        self._data = folder / "data"
        for each in (folder, folder / "files"):
            each.mkdir(mode=0o700)
            account.own(each)
        for number in range(20):
            file = folder / "files" / f"{number}"
            file.write_bytes(hashlib.sha256(bytes([number])).digest() * (FOREIGN_BYTES // 32))
            account.own(file)
        self._run("initdb", "-D", self._data, "-U", "canary", "-N", "--no-instructions")
        options = f"-k {folder} -c listen_addresses='' -c shared_buffers=16MB"
        control = ("pg_ctl", "-w", "-D", self._data)
        self._run(*control, "-l", folder / "log", "-o", options, "start")
        self._sql(FILL)
        self._first = self.look()

    def look(self) -> tuple[str, dict[str, str]]:
        """What it answers, with the time since when it runs, and its files' sums."""
        files = sorted((self._folder / "files").iterdir())
        sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        try:
            return self._sql(LOOK), sums
        except subprocess.CalledProcessError as error:
            return f"does not answer: {error}", sums

    def is_as_it_was(self) -> bool:
        """Whether nothing about it has changed."""
        return self.look() == self._first

    def stop(self) -> None:
        """Stop the cluster."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def _sql(self, statement: str) -> str:
        at = ("-h", self._folder, "-U", "canary", "-d", "postgres")
        return self._run("psql", "-X", "-A", "-t", *at, "-c", statement)

    def _run(self, program: str, *arguments: str | Path) -> str:
        argv = [self._bindir / program, *arguments]
        environment = self._account.environment(self._folder)
        out = self._folder.with_name("canary.out")
        with out.open("w+b") as stream:
            process = self._account.spawn(
                argv, env=environment, cwd=self._folder, stdout=stream, stderr=stream
            )
            status = process.wait(120)
        said = out.read_text()
        if status != 0:
            raise subprocess.CalledProcessError(status, argv, said)
        return said
