"""Reading what the probe prints: known facts are read, unknown ones stay unknown."""

import subprocess
from pathlib import Path

import pytest

from runs.execution import facts

REPORT = """== uname
Linux 6.12.48+deb13-amd64 x86_64
== os_release
PRETTY_NAME="Debian GNU/Linux 13 (trixie)"
ID=debian
== lscpu
CPU(s):                               32
Model name:                           AMD EPYC 7571
Core(s) per socket:                   8
Socket(s):                            2
Hypervisor vendor:                    KVM
== processors
32
== meminfo
MemTotal:       131933080 kB
MemFree:        1 kB
== virtualization
amazon
== product
Amazon EC2
m5a.8xlarge
== disks
nvme0n1\t419430400\t0\tAmazon Elastic Block Store
sda\t976773168\t1\tST500DM002
vdb\t\t\t
== governor
performance
== installations
bindir\t/usr/lib/postgresql/9.6/bin
postgres\tpostgres (PostgreSQL) 9.6.24 (Debian 9.6.24-1.pgdg13+1)
configure\t'--build=x86_64-linux-gnu' '--with-tcl'
cflags\t-O2 -g
block_size\t8192
wal_block_size\t8192
wal_segment_size\t2048
extensions\tplpgsql pg_prewarm plpgsql
pgbench\tpgbench (PostgreSQL) 9.6.24 (Debian 9.6.24-1.pgdg13+1)
psql\tpsql (PostgreSQL) 9.6.24
bindir\t/opt/pg19/bin
postgres\tpostgres (PostgreSQL) 19beta1
block_size\t32768
wal_segment_size\t
configure\t
pgbench\t
psql\t
bindir\t/opt/broken/bin
postgres\tpostgres: error while loading shared libraries: libz.so
configure\t
pgbench\t
psql\t
== end
"""


@pytest.fixture
def found() -> facts.Facts:
    return facts.read(REPORT)


def test_cores_are_those_of_all_sockets(found):
    hardware = found.hardware
    assert (hardware.sockets, hardware.cores, hardware.threads) == (2, 16, 32)
    assert hardware.cpu_model == "AMD EPYC 7571"
    assert hardware.memory_bytes == 131933080 * 1024


def test_a_cloud_machine_is_named_by_its_instance_type(found):
    assert found.hardware.product == "Amazon EC2 m5a.8xlarge"
    assert found.hardware.virtualization == "amazon"


def test_disks_have_size_and_kind_and_what_is_unknown_is_none(found):
    assert [(d.name, d.size_bytes, d.rotational) for d in found.hardware.disks] == [
        ("nvme0n1", 419430400 * 512, False),
        ("sda", 976773168 * 512, True),
        ("vdb", None, None),
    ]


def test_the_environment_is_os_and_kernel(found):
    system = found.operating_system
    assert system.name == "Debian GNU/Linux 13 (trixie)"
    assert (system.kernel, system.architecture) == ("Linux 6.12.48+deb13-amd64", "x86_64")
    assert system.governor == "performance"


def test_installations_are_read_and_broken_ones_left_out(found):
    old, new = found.installations
    assert (old.version, old.version_num, old.pgbench_version_num) == ("9.6.24", 90624, 90624)
    assert old.vendor == "Debian 9.6.24-1.pgdg13+1"
    assert (old.has_psql, new.has_psql) == (True, False)
    assert (new.version, new.version_num, new.pgbench_version_num) == ("19beta1", 190000, None)


def test_what_a_build_fixes_is_told_in_bytes(found):
    old, new = found.installations
    assert (old.block_size, old.wal_segment_size) == (8192, 16 * 1024 * 1024)
    assert (new.block_size, new.wal_segment_size) == (32768, None)
    assert old.cflags == "-O2 -g"


def test_each_extension_is_named_once(found):
    old, new = found.installations
    assert (old.extensions, new.extensions) == (("pg_prewarm", "plpgsql"), ())


def test_a_silent_machine_gives_unknown_facts_and_no_error():
    nothing = facts.read("")
    assert nothing.hardware.cores is None
    assert nothing.hardware.memory_bytes is None
    assert nothing.installations == ()


def test_the_same_hardware_has_the_same_fingerprint_and_more_memory_another(found):
    assert facts.read(REPORT).hardware.fingerprint == found.hardware.fingerprint
    more = facts.read(REPORT.replace("131933080", "263866160"))
    assert more.hardware.fingerprint != found.hardware.fingerprint
    assert more.operating_system.fingerprint == found.operating_system.fingerprint


def test_free_memory_and_the_clock_do_not_change_the_fingerprint(found):
    later = facts.read(REPORT.replace("MemFree:        1 kB", "MemFree:        9 kB"))
    assert later.hardware.fingerprint == found.hardware.fingerprint


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("postgres (PostgreSQL) 9.2.24", 90224),
        ("postgres (PostgreSQL) 10.23", 100023),
        ("pgbench (PostgreSQL) 18.4", 180004),
        ("postgres (PostgreSQL) 17devel", 170000),
        ("postgres (PostgreSQL) 18rc1 (Ubuntu 18~rc1-1)", 180000),
        ("sh: postgres: not found", None),
        ("", None),
    ],
)
def test_versions_become_numbers_as_in_server_version_num(printed, number):
    assert facts.version_num(printed) == number


def test_the_probe_tells_this_machine_what_the_kernel_tells():
    probe = Path(facts.__file__).with_name("probe.sh").read_text()
    told = subprocess.run(["sh", "-c", probe, "probe"], capture_output=True, text=True, check=True)
    found = facts.read(told.stdout)
    total = Path("/proc/meminfo").read_text().split()[1]
    assert found.hardware.memory_bytes == int(total) * 1024
    assert found.hardware.threads == len(
        [
            line
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("processor")
        ]
    )
