"""What packs save: files, bytes on disk, and the time to store, pack and read files of runs.

    .venv/bin/python -m benchmarks.packing [--runs 1000] [--folder /var/tmp]

The files of a run are like those of an executed one with 60 s of load: summary and progress of
pgbench, its histogram, sysstat's recording and the server's log. Every second run stores each as a
file of its own, which the command packs in the end; the others store packs at once. The folder is
to be on a disk: in memory a flush costs nothing.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

from benchlab.embedded.postgresql import SUPERUSER
from benchmarks.backup import _instance, _manage
from benchmarks.own_services import own_services
from tests.migrated import create_database

SECONDS = 60
READS = 500
TIMES: dict[str, list[tuple[float, float]]] = defaultdict(list)
TABLES = """
SELECT pg_total_relation_size('runs_pack') + pg_total_relation_size('runs_packedfile')"""


def main() -> None:
    """Store, read, and pack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchlab-packing-", dir=options.folder) as name:
        folder = Path(name)
        with own_services(folder) as (postgresql, redis):
            password = (folder / "pg" / f"password-{SUPERUSER}").read_text().strip()
            server = f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{postgresql.port}/postgres"
            instance = _instance(folder / "var", create_database(server, "packing"), redis.url)
            _manage(instance, "migrate", "--verbosity=0")
            os.environ.update(instance)
            django.setup()
            measure(options.runs)


def measure(number: int) -> None:
    """In this process, whose instance is empty."""
    from django.core.management import call_command  # noqa: PLC0415 -- after the settings
    from django.db import transaction  # noqa: PLC0415

    from runs.models import Artifact  # noqa: PLC0415
    from runs.services.runs import artifacts  # noqa: PLC0415
    from tests import factories  # noqa: PLC0415

    campaign = factories.finish_all(factories.campaign("packing", repeats=2 * number))
    runs = list(campaign.runs.order_by("pk")[: 2 * number])
    files = [files_of(each.pk) for each in runs]

    def singles(place: int) -> None:
        with transaction.atomic():
            for each in files[place]:
                artifacts.store(run=runs[place], data=each)

    def together(place: int) -> None:
        with transaction.atomic():
            artifacts.store_all((runs[place].pk, each) for each in files[place])

    def read_own(artifact: Any) -> None:
        with artifacts.open_artifact(artifact) as content:
            content.read()

    def read_packed(artifact: Any) -> None:
        read_own(artifact)

    for place in range(number):
        _timed(singles, place)
        _timed(together, number + place)
    stored = _bytes_of_tables()
    _told("*.gz")
    _told("*.zip")
    own = Artifact.objects.filter(run__in=[each.pk for each in runs[:number]])
    packed = Artifact.objects.exclude(pk__in=own)
    luck = random.Random(1)
    for one, other in zip(
        luck.sample(list(own), READS), luck.sample(list(packed), READS), strict=True
    ):
        _timed(read_own, one)
        _timed(read_packed, other)
    for name, took in TIMES.items():
        _sum_up(name, took)
    began, used = time.monotonic(), time.process_time()
    call_command("pack_files")
    took = time.monotonic() - began
    print(f"pack {number} runs: {took:.1f} s, {time.process_time() - used:.1f} s CPU", flush=True)
    _told("*.gz")
    _told("*.zip")
    moved = _bytes_of_tables() - stored
    print(f"tables: {stored / number:.0f} bytes a run, {moved / number:.0f} of one that was moved")


def _bytes_of_tables() -> int:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        return int(cursor.fetchone()[0])


def files_of(run: int) -> list[Any]:
    """Of a run of one minute, as large as they are and as well compressible."""
    from runs.execution.reporter import ArtifactData  # noqa: PLC0415

    luck = random.Random(run)
    progress = [
        f"progress: {second}.0 s, {luck.gauss(2800, 60):.1f} tps, lat {luck.gauss(0.7, 0.05):.3f}"
        f" ms stddev {luck.gauss(0.15, 0.02):.3f}, 0 failed"
        for second in range(1, SECONDS + 1)
    ]
    histogram = [f"{place}\t{luck.randrange(3000)}" for place in range(250)]
    recording = [
        ", ".join(
            f'"{name}": {luck.gauss(20, 5):.2f}'
            for name in ("user", "nice", "system", "iowait", "steal", "idle", "await", "util") * 14
        )
        for _second in range(SECONDS)
    ]
    log = [
        f"2026-11-22 23:17:{luck.random() * 60:06.3f} UTC [{run}] LOG:  checkpoint {each}"
        for each in range(30)
    ]
    named = {
        "pgbench.out": [f"pgbench (18.4) run {run}", *progress[:15]],
        "pgbench.err": progress,
        "histogram.txt": histogram,
        "sysstat.json": recording,
        "server.log": log,
    }
    return [ArtifactData(name, "\n".join(lines).encode()) for name, lines in named.items()]


def _timed(do: Callable[[Any], None], over: Any) -> None:
    began, used = time.perf_counter(), time.process_time()
    do(over)
    took = time.perf_counter() - began, time.process_time() - used
    TIMES[do.__name__].append((1000 * took[0], 1000 * took[1]))


def _sum_up(name: str, took: list[tuple[float, float]]) -> None:
    walls, cpus = zip(*took, strict=True)
    p95 = statistics.quantiles(walls, n=20)[-1]
    print(
        f"{name}: {statistics.median(walls):.2f} ms, p95 {p95:.2f} ms,"
        f" CPU {statistics.fmean(cpus):.2f} ms",
        flush=True,
    )


def _told(pattern: str) -> None:
    from django.conf import settings  # noqa: PLC0415

    found = [each.stat() for each in Path(settings.ARTIFACTS_DIR).rglob(pattern)]
    size, on_disk = sum(each.st_size for each in found), sum(each.st_blocks for each in found) * 512
    print(
        f"{pattern}: {len(found)}, {size / 2**20:.1f} MB, {on_disk / 2**20:.1f} MB on disk",
        flush=True,
    )


if __name__ == "__main__":
    main()
