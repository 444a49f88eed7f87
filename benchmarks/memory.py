"""Whether a worker's memory stays flat over many short runs.

    .venv/bin/python -m benchmarks.memory [--runs 1000] [--servers 4] [--warm 20] [--workers 2]
                                       [--seconds 12]

Starts a complete instance with one worker or two, and lets it execute runs of one second on several
servers at once (ports of one OpenSSH server, each with its own base directory). Runs of ten seconds
and more also have a trend to look for, for which a worker loads numpy. Prints the worker's resident
memory as it goes, and the slope in kB a run by least squares, without the first runs, in which a
worker loads what it needs; then what each process takes.
"""

import argparse
import shutil
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchlab.embedded.account import service_account
from benchlab.embedded.binaries import postgresql_binaries
from benchmarks import processes
from benchmarks.cut_line import CutLine
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance

SECONDS_BETWEEN_LOOKS = 5.0
# A campaign's most repeats are fewer than a long measurement's runs.
RUNS_OF_A_CAMPAIGN = 50
PAGES = ("/", "/versions/", "/compare/", "/campaigns/", "/api/v1/runs/")


def main() -> None:
    """Execute, watch and print."""
    options = _options()
    with _servers(options.servers, apart=options.apart) as (instance, server_ids):
        if options.workers > 1:
            instance.keep_second_worker()
        worker = instance.pids()["worker"]
        queued = _queue(server_ids, options.runs, options.seconds)
        points = list(_watch(worker, queued))
        _read_pages(instance)
        _print_all(instance)
    warm = [point for point in points if point[0] >= options.warm]
    if len(warm) < 3:
        raise SystemExit("too few runs for a slope")
    slope = statistics.linear_regression(*zip(*warm, strict=True)).slope
    print(
        f"{points[-1][0]} runs, from {warm[0][1]} kB after {warm[0][0]} to {warm[-1][1]} kB: "
        f"{slope:+.1f} kB a run"
    )


def _read_pages(instance: WholeInstance) -> None:
    """Let each process of the web service load what pages need."""
    for path in PAGES * 6:
        with urllib.request.urlopen(f"{instance.url}{path}", timeout=60) as response:
            response.read()


def _print_all(instance: WholeInstance) -> None:
    """Resident memory of each process, and what all of them take together."""
    resident = proportional = 0
    pids = instance.pids()
    # The parent has all others below it.
    of_each = {"parent": [pids["parent"]]} if "parent" in pids else {}
    of_each |= {name: processes.with_children(pids[name]) for name in ("web", "control")}
    of_each["worker"] = instance.workers()
    for name, found in of_each.items():
        for pid in found:
            mine = processes.resident_kilobytes(pid), processes.proportional_kilobytes(pid)
            resident, proportional = resident + mine[0], proportional + mine[1]
            print(f"{name:8} {mine[0] / 1024:6.0f} MB resident, {mine[1] / 1024:6.0f} MB its part")
    print(f"together {resident / 1024:6.0f} MB, {proportional / 1024:6.0f} MB")


def _watch(worker: int, queued: int) -> Iterator[tuple[int, int]]:
    """(runs that have finished, resident kB of the worker) now and then, until all have ended."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    began, finished = time.monotonic(), -1
    while finished < queued and not own_queue.is_over():
        time.sleep(SECONDS_BETWEEN_LOOKS)
        now = own_queue.finished()
        if now != finished:
            finished, kilobytes = now, processes.resident_kilobytes(worker)
            print(
                f"{time.monotonic() - began:6.0f} s {finished:5d} runs {kilobytes} kB", flush=True
            )
            yield finished, kilobytes


def _queue(server_ids: list[int], runs: int, seconds: int) -> int:
    """Queue that many runs, evenly on all servers; how many they became."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    left = runs // len(server_ids)
    queued = 0
    while left > 0:
        repeats = min(left, RUNS_OF_A_CAMPAIGN)
        for server_id in server_ids:
            own_queue.queue("Short runs", server_id, repeats=repeats, duration=seconds)
            queued += repeats
        left -= repeats
    return queued


@contextmanager
def _servers(number: int, *, apart: bool) -> Iterator[tuple[WholeInstance, list[int]]]:
    """An instance, and the ids of that many servers in it."""
    folder = Path(tempfile.mkdtemp(prefix="bl-"))
    folder.chmod(0o755)
    instance = WholeInstance(folder, apart=apart)
    target, lines = None, []
    try:
        instance.start()
        from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
        from runs.services.servers import servers  # noqa: PLC0415

        account = service_account()
        bindir = postgresql_binaries((instance.var / "services").resolve(), account).postgresql18
        target = Target(folder, account, bindir)
        target.start(servers.public_key())
        lines = [CutLine(target.sshd.port) for _ in range(number)]
        yield (
            instance,
            [
                own_queue.register(
                    f"Server {index}",
                    port=line.port,
                    username=target.login,
                    base_dir=f"{target.base}{index}",
                    bindirs=[str(bindir)],
                )
                for index, line in enumerate(lines)
            ],
        )
    finally:
        instance.stop()
        for line in lines:
            line.close()
        if target is not None:
            target.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=4, help="that execute at once")
    parser.add_argument(
        "--apart", action="store_true", help="each program loads BenchLab itself, as in containers"
    )
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    parser.add_argument("--seconds", type=int, default=1, help="each run's duration")
    parser.add_argument("--warm", type=int, default=20, help="runs that the slope leaves out")
    return parser.parse_args()


if __name__ == "__main__":
    main()
