"""Are runs under foreign load called doubtful, and quiet ones not? Tried for real.

    .venv/bin/python -m benchmarks.certificates [--tries 20] [--duration 10]

Starts a complete instance and an OpenSSH server as its target, and queues two campaigns of so many
runs (fixed-point read, one client): the first while the machine is left alone, the second while
half of its processors are kept busy by others. Prints for each run its validity, what others took
of the processors, and the codes of what was found; then how many of each were doubtful.

The first half needs a machine that is quiet: the load of the last minute is printed before it.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.overhead import SECONDS_BETWEEN_LOOKS, measured_server

PATIENCE_SECONDS = 60.0
SECONDS_A_RUN = 30
BURN = "while True: pass"


def main() -> None:
    """Measure and print."""
    options = _options()
    with measured_server() as server_id:
        print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        quiet = _validities("Quiet", server_id, options)
        with _foreign_load() as processes:
            loaded = _validities("Under foreign load", server_id, options)
    doubted = [sum(each in {"doubtful", "invalid"} for each in found) for found in (quiet, loaded)]
    print(f"quiet: {doubted[0]} of {len(quiet)} doubtful")
    print(f"{processes} busy processes beside it: {doubted[1]} of {len(loaded)} doubtful")


@contextmanager
def _foreign_load() -> Iterator[int]:
    """Keep half of the processors busy, at least one."""
    wanted = max(1, (os.cpu_count() or 2) // 2)
    busy = [subprocess.Popen([sys.executable, "-c", BURN]) for _each in range(wanted)]
    try:
        yield wanted
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _validities(title: str, server_id: int, options: argparse.Namespace) -> list[str]:
    """What the runs of one campaign are called, none of them measured again."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance
    from runs.models import Campaign, Run  # noqa: PLC0415

    campaign = own_queue.queue(title, server_id, repeats=options.tries, duration=options.duration)
    Campaign.objects.filter(pk=campaign).update(remeasures=0)
    until = time.monotonic() + PATIENCE_SECONDS
    until += options.tries * (options.duration + SECONDS_A_RUN)
    while not own_queue.is_over() and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    runs = list(Run.objects.filter(campaign=campaign).order_by("position"))
    for run in runs:
        print(
            f"{title}, run {run.pk}: {run.state}, {run.validity or '-'}, {_told(run.certificate)}"
        )
    return [run.validity for run in runs if run.state == Run.State.FINISHED]


def _told(certificate: dict[str, object]) -> str:
    """The share of the processors that others took, and the codes."""
    usage, findings = certificate.get("usage"), certificate.get("findings")
    shares = [
        1 - (each["servers"] + each["generator"] + each["kernel"]) / each["busy"]
        for each in (usage.values() if isinstance(usage, dict) else ())
        if each["busy"]
    ]
    codes = [each["code"] for each in findings] if isinstance(findings, list) else []
    of_busy = ", ".join(f"{100 * share:.0f} % of the busy time was others'" for share in shares)
    return f"{of_busy or 'nothing known'}: {', '.join(codes)}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--duration", type=int, default=10, help="seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
