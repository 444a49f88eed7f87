"""A server that stalls under the load: the run finishes, and reports it."""

import subprocess
import time
from dataclasses import replace

import pytest

from tests.ssh.directing import watched, when_measuring

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


@prepared
def test_a_server_that_stood_still_is_told_of(direct, plan, base_dir):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 8}))

    def signal(name: str) -> None:
        [pid_file] = base_dir.glob("clusters/*/data/postmaster.pid")
        postmaster = pid_file.read_text().split()[0]
        subprocess.run(["pkill", f"-{name}", "-P", postmaster], check=True)

    def orders():
        frozen = 0.0
        is_over = False
        for order in when_measuring(director, "cancel"):
            if order == "cancel" and not frozen:
                signal("STOP")
                frozen = time.monotonic()
            elif frozen and not is_over and time.monotonic() - frozen > 4:
                signal("CONT")
                is_over = True
            yield "go_on"

    found = watched(director, orders())
    assert "load_stalled" in {note.code for note in found.notes}
    assert found.measurements["tps"] > 0
