"""Executes runs on this host: `python -m benchlab.worker`, which script/worker calls.

    script/worker --join URL TOKEN   joins the BenchLab of another host, checks, and works
    script/worker                    works; for a host that has joined
    script/worker --check            only checks
    script/worker --leave            leaves, and removes what this host got

More of --join: --name NAME, --certificate FILE, --trusted-network, and --only to start nothing.
"""

import os
import subprocess
import sys
from pathlib import Path

from benchlab import celery_worker

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Do what the arguments say; the exit status, where no worker takes this process' place."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchlab.settings")
    what, *arguments = sys.argv[1:] or [""]
    if what == "--leave" and not arguments:
        return _manage("leave_host")
    if what == "--join" and len(arguments) >= 2:
        starts = "--only" not in arguments
        arguments = [argument for argument in arguments if argument != "--only"]
        status = _manage("join_host", *arguments)
        return status or _check_and_work(starts=starts)
    if what == "--check" and not arguments:
        return _check_and_work(starts=False)
    if what == "" and not arguments:
        return _check_and_work(starts=True)
    print(__doc__, file=sys.stdout if what in {"-h", "--help"} else sys.stderr)
    return 0 if what in {"-h", "--help"} else 2


def _check_and_work(*, starts: bool) -> int:
    status = _manage("check_host")
    if status or not starts:
        return status
    sys.stdout.flush()
    os.chdir(ROOT)
    worker = celery_worker.arguments(queue="runs", threads=celery_worker.HELD_RUNS)
    return os.execv(sys.executable, [sys.executable, *worker])  # noqa: S606 - in place of this one


def _manage(*arguments: str) -> int:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
