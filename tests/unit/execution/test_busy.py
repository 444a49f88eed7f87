"""What other programs take of a machine, read from the kernel's counters a second apart."""

import subprocess
import sys

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.machine import busy
from runs.execution.machine.busy import Busy

BEFORE = "machine\t1000\t800\nprocess\t7\t50\tcc1plus\nprocess\t8\t10\ta (b) c\n"


def test_programs_are_named_by_what_they_took_in_between():
    after = (
        "machine\t1200\t820\nprocess\t7\t170\tcc1plus\nprocess\t8\t11\ta (b) c\n"
        "process\t9\t40\tcc1plus\n"
    )
    assert busy.parse(f"{BEFORE}again\n{after}") == Busy(0.9, (("cc1plus", 0.8),))


def test_a_thread_of_the_kernel_that_is_renamed_took_only_what_is_new():
    before = "machine\t1000\t800\nprocess\t7\t5000\tkworker/1:1-events\n"
    after = "machine\t1200\t1000\nprocess\t7\t5001\tkworker/1:1-idle\n"
    assert busy.parse(f"{before}again\n{after}") == Busy(0.0)


def test_an_idle_machine_has_no_programs_to_name():
    assert busy.parse(f"{BEFORE}again\nmachine\t1200\t1000\n") == Busy(0.0)


@pytest.mark.parametrize(
    "report", ["", BEFORE, f"{BEFORE}again\n", f"{BEFORE}again\n{BEFORE}"]
)
def test_a_report_that_is_not_whole_says_nothing(report):
    with pytest.raises(TargetProblem) as problem:
        busy.parse(report)
    assert problem.value.code == "load_unknown"


def test_a_program_that_works_is_found_on_this_machine():
    code = "while True: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as worker:
        try:
            report = subprocess.check_output(["sh", "-c", busy._SCRIPT], text=True)
        finally:
            worker.kill()
    found = busy.parse(report)
    assert found.share > 0
    before, _mark, after = report.partition("again")
    assert f"process\t{worker.pid}\t" in before
    assert f"process\t{worker.pid}\t" in after
