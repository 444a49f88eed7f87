"""Each benchmark starts as its documentation says: from a shell in which Django is not set up."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
# One process for all of them: what is loaded once is not loaded by the next one.
LOOK = """
import importlib, sys
wrong = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(f"benchmarks.{name}")
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}: {error}")
sys.exit("\\n".join(wrong) or 0)
"""


def test_no_benchmark_needs_django_before_it_has_an_instance():
    programs = [
        path.stem
        for path in sorted((ROOT / "benchmarks").glob("*.py"))
        if '__name__ == "__main__"' in path.read_text()
    ]
    assert {"ingest", "overhead", "pages"} <= set(programs)
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    found = subprocess.run(
        [sys.executable, "-c", LOOK, *programs],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (found.returncode, found.stderr.decode()) == (0, "")
