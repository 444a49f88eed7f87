"""What a login may use of its machine, of each architecture, and what a system is called."""

import os
import subprocess
from pathlib import Path

import pytest

import runs.execution
from runs.execution.machine.machine_facts import hardware, operating_system
from runs.execution.machine.sections import sections_of
from tests.patterns import min_of

PROBE = Path(runs.execution.__file__).parent / "machine" / "probe.sh"


def report(**sections):
    return sections_of(
        "\n".join(f"== {name}\n{text}" for name, text in sections.items())
    )


def facts(**sections):
    read = hardware(report(**sections))
    return read.cpu_model, read.sockets, read.cores, read.threads


def topology(threads, per_core=1, per_socket=99, apart=1):
    """Lines of processors; the second threads of cores follow after `apart` processors."""
    lines = []
    for cpu in range(threads):
        core = cpu % apart if apart > 1 else cpu // per_core
        siblings = [
            str(each)
            for each in range(threads)
            if (each % apart if apart > 1 else each // per_core) == core
        ]
        lines.append(f"{cpu}\t{core}\t{core // per_socket}\t{','.join(siblings)}")
    return "\n".join(lines)


def lscpu(*lines):
    return "\n".join(lines)


MACHINES = {
    "x86 of two sockets": (
        {
            "lscpu": lscpu(
                "CPU(s): 8",
                "On-line CPU(s) list: 0-7",
                "Model name: Some Xeon",
                "Thread(s) per core: 2",
                "Core(s) per socket: 2",
                "Socket(s): 2",
            )
        },
        ("Some Xeon", 2, 4, 8),
    ),
    "hybrid, without the kernel's files": (
        {
            "lscpu": lscpu(
                "CPU(s): 22",
                "On-line CPU(s) list: 0-21",
                "Model name: X",
                "Thread(s) per core: 2",
                "Core(s) per socket: 16",
                "Socket(s): 1",
            )
        },
        ("X", 1, 16, 22),
    ),
    "half of the threads off": (
        {
            "lscpu": lscpu(
                "CPU(s): 8",
                "On-line CPU(s) list: 0-3",
                "Off-line CPU(s) list: 4-7",
                "Model name: X",
                "Core(s) per socket: 4",
                "Socket(s): 1",
            ),
            "topology": topology(4),
        },
        ("X", 1, 4, 4),
    ),
    "a container of four processors": (
        {
            "lscpu": lscpu(
                "CPU(s): 96",
                "On-line CPU(s) list: 0-95",
                "Model name: X",
                "Core(s) per socket: 48",
                "Socket(s): 1",
            ),
            "processors": "4",
        },
        ("X", 1, 4, 4),
    ),
    "two threads of one core by affinity": (
        {
            "lscpu": lscpu("CPU(s): 8", "On-line CPU(s) list: 0-7", "Model name: X"),
            "allowed": "0,4",
            "topology": topology(8, apart=4),
            "processors": "8",
        },
        ("X", 1, 1, 2),
    ),
    "arm64 in clusters": (
        {
            "lscpu": lscpu(
                "CPU(s): 64",
                "Model name: Neoverse-N1",
                "Core(s) per cluster: 32",
                "Socket(s): -",
                "Cluster(s): 2",
            )
        },
        ("Neoverse-N1", None, 64, 64),
    ),
    "arm64 of two kinds": (
        {
            "lscpu": lscpu(
                "CPU(s): 8",
                "Vendor ID: ARM",
                "Model name: Cortex-A55",
                "  Core(s) per socket: 4",
                "  Socket(s): 1",
                "Model name: Cortex-A76",
                "  Core(s) per socket: 2",
                "  Socket(s): 2",
            )
        },
        ("Cortex-A55 + Cortex-A76", None, 8, 8),
    ),
    "arm64 without a name": (
        {
            "lscpu": lscpu(
                "Architecture: aarch64",
                "CPU(s): 8",
                "Vendor ID: Apple",
                "Model name: -",
                "Model: 0",
                "Core(s) per socket: 8",
                "Socket(s): 1",
            )
        },
        ("Apple 0", 1, 8, 8),
    ),
    "s390x": (
        {
            "lscpu": lscpu(
                "Architecture: s390x",
                "CPU(s): 16",
                "Thread(s) per core: 2",
                "Core(s) per socket: 2",
                "Socket(s) per book: 2",
                "Book(s) per drawer: 1",
                "Drawer(s): 2",
                "Vendor ID: IBM/S390",
                "Machine type: 3931",
            )
        },
        ("IBM/S390 3931", 4, 8, 16),
    ),
    "s390x, one of many parts": (
        {
            "lscpu": lscpu(
                "Architecture: s390x",
                "CPU(s): 8",
                "Thread(s) per core: 2",
                "Core(s) per socket: 8",
                "Socket(s) per book: 3",
                "Book(s): 8",
                "Vendor ID: IBM/S390",
                "Machine type: 2964",
            )
        },
        ("IBM/S390 2964", 4, 4, 8),
    ),
    "ppc64le with threads off": (
        {
            "lscpu": lscpu(
                "CPU(s): 16",
                "On-line CPU(s) list: 0,8",
                "Off-line CPU(s) list: 1-7,9-15",
                "Thread(s) per core: 1",
                "Core(s) per socket: 2",
                "Socket(s): 1",
                "Model name: POWER9, altivec supported",
            )
        },
        ("POWER9, altivec supported", 1, 2, 2),
    ),
    "riscv": (
        {
            "lscpu": lscpu(
                "Architecture: riscv64",
                "CPU(s): 4",
                "Thread(s) per core: 4",
                "Core(s) per socket: 1",
                "Socket(s): 1",
            ),
            "topology": "\n".join(f"{n}\t{n}\t-1\t{n}" for n in range(4)),
        },
        ("riscv64", None, 4, 4),
    ),
    "RHEL 6": (
        {
            "lscpu": lscpu(
                "CPU(s): 16",
                "Thread(s) per core: 1",
                "Core(s) per socket: 8",
                "CPU socket(s): 2",
            ),
            "cpuinfo": "model name\t: Some Xeon",
        },
        ("Some Xeon", 2, 16, 16),
    ),
    "no lscpu": (
        {
            "processors": "4",
            "cpuinfo": "model name\t: X",
            "topology": topology(4, per_core=2),
        },
        ("X", 1, 2, 4),
    ),
    "hostile": (
        {
            "lscpu": lscpu("CPU(s): 4", "On-line CPU(s) list: 0-99999999999"),
            "allowed": "9-1",
        },
        ("", None, None, 4),
    ),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_usable_part_of_a_machine(machine):
    sections, expected = MACHINES[machine]
    assert facts(**sections) == expected


MEMORY = "MemTotal: 16777216 kB"


@pytest.mark.parametrize(
    ("cgroup", "cpu", "memory"),
    [
        (
            "cpu.max\t200000 100000\nmemory.max\t2147483648\ncpu.max\tmax 100000",
            "2",
            2**31,
        ),
        ("cpu.max\tmax 100000\nmemory.max\tmax\nmemory.max\t4294967296", None, 2**32),
        ("cpu.max\t400000 100000\ncpu.max\t50000 100000", "0.5", None),
        ("cpu.cfs_quota_us\t150000\ncpu.cfs_period_us\t100000", "1.5", None),
        ("cpu.cfs_quota_us\t-1\ncpu.cfs_period_us\t100000", None, None),
        ("memory.limit_in_bytes\t9223372036854771712", None, None),
        (
            "memory.limit_in_bytes\t1073741824\nmemory.limit_in_bytes\t9223372036854771712",
            None,
            2**30,
        ),
        ("cpu.max\tnonsense\nmemory.max\t-4", None, None),
    ],
)
def test_limits_of_groups_are_facts_and_memory_is_what_they_leave(cgroup, cpu, memory):
    sections = report(meminfo=MEMORY, cgroup=cgroup)
    free = report(meminfo=MEMORY, cgroup="known")
    more = operating_system(sections).more
    assert more["cpu_limit"] == (cpu or "none")
    assert "cpu_limit" not in operating_system(report(meminfo=MEMORY)).more
    assert more.get("memory_limit_bytes") == (str(memory) if memory else None)
    assert hardware(sections).memory_bytes == (memory or 2**34)
    differs = (
        hardware(sections).fingerprint != hardware(free).fingerprint
        or operating_system(sections).fingerprint != operating_system(free).fingerprint
    )
    assert differs == bool(cpu or memory)


def test_affinity_and_hybrid_cores_are_facts():
    sections = report(
        lscpu="CPU(s): 20\nOn-line CPU(s) list: 0-19",
        allowed="0-11",
        hybrid="core\t0-11\natom\t12-19",
    )
    assert operating_system(sections).more == {
        "cpus_allowed": "0-11",
        "hybrid_cores": "core 0-11, atom 12-19",
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PRETTY_NAME='My Linux 3'", "My Linux 3"),
        ('NAME="Some Linux"\nVERSION="9.1 (Moon)"', "Some Linux 9.1 (Moon)"),
        ('PRETTY_NAME="It\'s \\"new\\""', 'It\'s "new"'),
        ("PRETTY_NAME=Plain", "Plain"),
        ('PRETTY_NAME="a \\`b\\` #1" # the name', "a `b` #1"),
        ('ID=nixos\nNAME=NixOS\nVERSION_ID="24.05"', "NixOS 24.05"),
        ("ID=wolfi\nVERSION_ID=20230201", "wolfi 20230201"),
        ("CentOS release 6.10 (Final)", "CentOS release 6.10 (Final)"),
        ('PRETTY_NAME="open', "open"),
        ("", "Linux"),
    ],
)
def test_a_system_has_the_name_that_a_shell_reads(text, name):
    assert (
        operating_system(report(uname="Linux 6.1 x86_64", os_release=text)).name == name
    )


def test_the_probe_counts_what_this_login_may_use():
    one = min(os.sched_getaffinity(0))
    argv = ["taskset", "-c", str(one), "sh", str(PROBE), "probe", "/"]
    for command, count in ((argv, 1), (argv[3:], len(os.sched_getaffinity(0)))):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert hardware(sections_of(done.stdout)).threads == count


def test_a_hostile_report_is_answered_soon():
    text = "\n".join(f"{number}\t{number}\t0\t{number}" for number in range(20_000))
    sections = report(
        topology=text, allowed="0-65535,0-65535" * 500, cgroup="cpu.max\t1 1\n" * 9000
    )
    assert min_of(lambda: hardware(sections), 2) < 2
