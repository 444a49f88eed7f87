"""Sends generated data to a target, and copies it into tables there.

A generator is a package in BenchLab's own environment, so a target needs none. The files are sent
in pieces, each of which can be sent again, and removed after they are in the database.
"""

import asyncio
import io
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import runs
from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.steps.steps import HAS_ENDED
from runs.wording import gettext_noop as _

PIECE_BYTES = 8 * 1024 * 1024
_APPEND = 'truncate -s "$2" "$1" && cat >>"$1"'
# The path of a worker's own modules, whatever folder it was started in.
ROOT = Path(runs.__file__).parents[1]


async def copied(
    bench: Bench,
    step: str,
    tables: Sequence[str],
    generate: Callable[[Path], Sequence[str]],
) -> None:
    """Fill tables with `TABLE.csv` files that a command writes to a folder of the worker.

    `generate` gives the command for a folder. The step is the copy of the last table: a run that
    another worker takes over does not generate or send what is in the database already.
    """
    if await _is_done(bench, f"{step}-{tables[-1]}"):
        for table in tables:
            await bench.sql(f"{step}-{table}", _copy(bench, table))
        return
    with tempfile.TemporaryDirectory(prefix="benchlab-data-") as folder:
        await _generated(generate(Path(folder)))
        for table in tables:
            await send(bench, Path(folder) / f"{table}.csv", _path(bench, table))
            (Path(folder) / f"{table}.csv").unlink()
            await bench.sql(f"{step}-{table}", _copy(bench, table))
            await bench.run("rm", "-f", _path(bench, table))


async def placed(
    bench: Bench,
    step: str,
    tables: Sequence[str],
    generate: Callable[[Path], Sequence[str]],
) -> None:
    """Send `TABLE.csv` files to a folder next to the cluster's own, so that its copies have them.

    For scenarios that measure the loading itself: each run then uses `copy_placed`.
    """
    folder_there = f"{bench.cluster.data}/benchlab"
    if not await _is_done(bench, step):
        await bench.run("mkdir", "-p", folder_there)
        with tempfile.TemporaryDirectory(prefix="benchlab-data-") as folder:
            await _generated(generate(Path(folder)))
            for table in tables:
                await send(
                    bench, Path(folder) / f"{table}.csv", f"{folder_there}/{table}.csv"
                )
    await bench.step(step, ["ls", "-l", folder_there])


def copy_placed(bench: Bench, table: str) -> str:
    """The statement that copies a placed file, which has a heading, into its table."""
    path = f"{bench.cluster.data}/benchlab/{table}.csv"
    return f"COPY {table} FROM '{path}' WITH (FORMAT csv, HEADER true);"


async def send(bench: Bench, local: Path, path: str) -> None:
    """Send a file to the database's machine."""
    with local.open("rb") as file:
        await _send(bench, file, path)


async def send_text(bench: Bench, text: str, path: str) -> None:
    """Send a text as a file to the database's machine: a step's input must be small."""
    await _send(bench, io.BytesIO(text.encode()), path)


async def _send(bench: Bench, file: BinaryIO, path: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece

    await send_pieces(bench, pieces(), path)


async def send_pieces(bench: Bench, pieces: AsyncIterator[bytes], path: str) -> None:
    """Send a file in pieces, which come one after the other."""
    offset = 0
    await _append(bench, path, offset, b"")
    async for piece in pieces:
        await _append(bench, path, offset, piece)
        offset += len(piece)


async def _append(bench: Bench, path: str, offset: int, piece: bytes) -> None:
    words = ["sh", "-c", _APPEND, "append", path, str(offset)]
    reply = await bench.database.run(words, stdin=piece, timeout_s=600)
    if reply.exit_status != 0:
        raise TargetProblem(
            _("%(path)s cannot be written: %(stderr)s"),
            code="data_not_sent",
            remedy=_("Free space on the server, or choose a smaller scale."),
            path=path,
            stderr=reply.stderr.decode(errors="replace").strip(),
        )


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """The arguments that run a module of ours in a process of its own."""
    return (sys.executable, "-m", name, *arguments)


async def _generated(words: Sequence[str]) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=ROOT,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _out, output_bytes = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        status, output = process.returncode, output_bytes.decode(errors="replace")
    except FileNotFoundError as error:
        status, output = 127, str(error)
    if status != 0:
        raise TargetProblem(
            _("The data cannot be made: %(said)s"),
            code="generator_failed",
            remedy=_(
                "Look at the worker's disk, and install the extra datasets there."
            ),
            said=output.strip()[-500:],
        )


async def _is_done(bench: Bench, step: str) -> bool:
    words = ["sh", "-c", HAS_ENDED, "ended", f"{bench.steps_directory}/{step}"]
    return (await bench.run(*words)).exit_status == 0


def _copy(bench: Bench, table: str) -> str:
    return f"COPY {table} FROM '{_path(bench, table)}' WITH (FORMAT csv);"


def _path(bench: Bench, table: str) -> str:
    return f"{bench.directory}/{table}.csv"
