"""`benchlab`: what an installed wheel has in place of script/server, script/lab and manage.py.

The wheel holds the files of the repository in one folder, which is this file's.
"""

import os
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent
PROGRAMS = {
    "server": ["-m", "benchlab.embedded"],
    "lab": ["-m", "benchlab.lab"],
    "worker": ["-m", "benchlab.worker"],
    "manage": ["manage.py"],
    "extra": ["-m", "benchlab.extras"],
}
USAGE = """benchlab server           a complete BenchLab on http://127.0.0.1:8000/
benchlab lab              PostgreSQL 9.3 to 18 side by side, registered with it
benchlab worker --join URL TOKEN   works for the BenchLab at another host
benchlab manage COMMAND   a command of manage.py on it
benchlab extra NAME       installs archive-export (Parquet), datasets (TPC-H, -DS) or s3 (a bucket)

BENCHLAB_VAR is the folder of its data (~/.local/share/benchlab)."""


def main() -> None:
    """Become the program that the first argument names. Exits with 2 for another one."""
    asked, *arguments = sys.argv[1:] or ["--help"]
    if asked not in PROGRAMS:
        print(USAGE, file=sys.stdout if asked in {"-h", "--help"} else sys.stderr)
        sys.exit(0 if asked in {"-h", "--help"} else 2)
    data = Path(os.environ.get("BENCHLAB_VAR") or Path.home() / ".local/share/benchlab")
    os.environ["BENCHLAB_VAR"] = str(data.absolute())
    os.chdir(HOME)
    os.execv(sys.executable, [sys.executable, *PROGRAMS[asked], *arguments])
