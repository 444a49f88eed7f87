"""Reading what the probe prints, and lists of processors."""

import shutil
import subprocess
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from runs.analysis import fact_readers
from runs.analysis.comparability_rules import Fact
from runs.execution.errors import TargetProblem
from runs.execution.machine import cpus, target_facts
from runs.execution.machine.cores import Thread, choose, read

# Reading what the probe prints: known facts are read, unknown ones stay unknown.


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
Thread(s) per core:                   2
NUMA node(s):                         4
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
== cloud
"cloud_name": "aws"
"instance_type": "m5a.8xlarge"
== network
ens5\tena\t10000\t9001
eth1\tvirtio_net\t-1\t1500
== storage
device\tdm-0
filesystem\txfs
options\trw,noatime,rw,attr2,noquota
disks\t nvme0n1 sda
scheduler\tnone
== governor
performance
powersave
== smt
1
== no_turbo
1
== huge_pages
always [madvise] never
== sysctl
vm.swappiness\t1
kernel.sem\t250 32000 32 128
== limits
Limit                     Soft Limit           Hard Limit           Units
Max processes             96365                96365                processes
Max open files            1024                 1048576              files
Max locked memory         unlimited            unlimited            bytes
== tools
sysstat\t12.6.1
== installations
bindir\t/usr/lib/postgresql/9.6/bin
postgres\tpostgres (PostgreSQL) 9.6.24 (Debian 9.6.24-1.pgdg13+1)
configure\t'--build=x86_64-linux-gnu' '--with-tcl'
cflags\t-O2 -g
compiler\t, compiled by gcc (Debian 14.2.0-19) 14.2.0, 64-bit
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
def found() -> target_facts.Facts:
    return target_facts.read(REPORT)


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
    assert (system.kernel, system.architecture) == (
        "Linux 6.12.48+deb13-amd64",
        "x86_64",
    )
    assert system.governor == "performance powersave"


def test_the_machine_is_told_down_to_its_nodes_and_network(found):
    hardware = found.hardware
    assert (hardware.threads_per_core, hardware.numa_nodes) == (2, 4)
    assert hardware.cloud == "aws m5a.8xlarge"
    assert [(card.driver, card.speed_mbit, card.mtu) for card in hardware.network] == [
        ("ena", 10000, 9001),
        ("virtio_net", None, 1500),
    ]


def test_the_storage_is_that_of_the_base_directory(found):
    storage = found.operating_system.storage
    assert (storage.device, storage.filesystem, storage.scheduler) == (
        "dm-0",
        "xfs",
        "none",
    )
    assert storage.options == ("rw", "noatime", "attr2", "noquota")
    assert storage.disks == ("nvme0n1", "sda")


def test_how_the_machine_is_set_up_is_told(found):
    system = found.operating_system
    assert (system.smt, system.turbo, system.huge_pages) == (True, False, "madvise")
    assert system.kernel_settings == {
        "vm.swappiness": "1",
        "kernel.sem": "250 32000 32 128",
    }
    assert system.limits == {
        "processes": 96365,
        "open_files": 1024,
        "locked_memory_bytes": None,
    }
    assert system.tools == {"sysstat": "12.6.1"}


def test_installations_are_read_and_broken_ones_left_out(found):
    old, new = found.installations
    missing = "postgres: error while loading shared libraries: libz.so"
    assert found.broken == (("/opt/broken/bin", missing),)
    assert (old.version, old.version_num, old.pgbench_version_num) == (
        "9.6.24",
        90624,
        90624,
    )
    assert old.vendor == "Debian 9.6.24-1.pgdg13+1"
    assert (old.has_psql, new.has_psql) == (True, False)
    assert (new.version, new.version_num, new.pgbench_version_num) == (
        "19beta1",
        190000,
        None,
    )


def test_what_a_build_fixes_is_told_in_bytes(found):
    old, new = found.installations
    assert (old.block_size, old.wal_segment_size) == (8192, 16 * 1024 * 1024)
    assert (new.block_size, new.wal_segment_size) == (32768, None)
    assert old.cflags == "-O2 -g"
    assert (old.compiler, new.compiler) == ("gcc (Debian 14.2.0-19) 14.2.0", "")


def test_each_extension_is_named_once(found):
    old, new = found.installations
    assert (old.extensions, new.extensions) == (("pg_prewarm", "plpgsql"), ())


def test_a_silent_machine_gives_unknown_facts_and_no_error():
    nothing = target_facts.read("")
    assert nothing.hardware.cores is None
    assert nothing.hardware.memory_bytes is None
    assert nothing.installations == ()


def test_the_same_hardware_has_the_same_fingerprint_and_more_memory_another(found):
    assert target_facts.read(REPORT).hardware.fingerprint == found.hardware.fingerprint
    more = target_facts.read(REPORT.replace("131933080", "263866160"))
    assert more.hardware.fingerprint != found.hardware.fingerprint
    assert more.operating_system.fingerprint == found.operating_system.fingerprint


def test_free_memory_and_the_clock_do_not_change_the_fingerprint(found):
    later = target_facts.read(
        REPORT.replace("MemFree:        1 kB", "MemFree:        9 kB")
    )
    assert later.hardware.fingerprint == found.hardware.fingerprint


@pytest.mark.parametrize(
    ("told", "later"),
    [
        ("131933080 kB", "131930120 kB"),
        ("nvme0n1\t419430400", "nvme3n1\t419430400"),
        ("ens5\tena", "ens6\tena"),
        ("device\tdm-0", "device\tdm-1"),
    ],
    ids=["some pages of memory", "a disk's name", "a card's name", "a volume's number"],
)
def test_what_changes_by_itself_changes_no_fingerprint(found, told, later):
    again = target_facts.read(REPORT.replace(told, later))
    assert again != found
    assert again.hardware.fingerprint == found.hardware.fingerprint
    assert again.operating_system.fingerprint == found.operating_system.fingerprint


@pytest.mark.parametrize(
    ("told", "later"),
    [
        ("rw,noatime", "rw,relatime"),
        ("vm.swappiness\t1", "vm.swappiness\t60"),
        ("performance\npowersave", "performance"),
        ("== smt\n1", "== smt\n0"),
        ("sysstat\t12.6.1", "sysstat\t12.7.0"),
    ],
)
def test_what_somebody_changed_is_another_environment(found, told, later):
    again = target_facts.read(REPORT.replace(told, later))
    assert again.hardware.fingerprint == found.hardware.fingerprint
    assert again.operating_system.fingerprint != found.operating_system.fingerprint


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
    assert target_facts.version_num(printed) == number


def probe(*arguments: str) -> target_facts.Facts:
    command = target_facts.machine_probe(*(arguments or ("/",)))
    return target_facts.read_machine(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )


def test_the_probe_finds_the_storage_of_a_folder_that_is_not_there_yet():
    storage = probe("/dev/shm/not/yet").operating_system.storage
    assert (storage.filesystem, storage.device) == ("tmpfs", "")
    assert "rw" in storage.options


def test_the_probe_tells_this_machine_what_the_kernel_tells():
    found = probe()
    total = Path("/proc/meminfo").read_text().split()[1]
    assert found.hardware.memory_bytes == int(total) * 1024
    assert found.hardware.threads == len(
        [
            line
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("processor")
        ]
    )


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_every_shell_reads_settings_whole(shell):
    """A shell that reads byte by byte gets only the first one of /proc/sys."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is missing")
    _sh, *rest = target_facts.machine_probe("/")
    printed = subprocess.run(
        [shell, *rest], capture_output=True, text=True, check=True
    ).stdout
    told = target_facts.read_machine(printed).operating_system.kernel_settings
    assert len(told) > 10
    for name, value in told.items():
        path = Path("/proc/sys", *name.split("."))
        assert value == path.read_text().strip().replace("\t", " ")


@pytest.mark.parametrize(
    "cut", ["", "== uname\n\n== end\n", REPORT.partition("== end")[0]]
)
def test_a_report_that_is_not_whole_is_not_taken_for_another_machine(cut):
    with pytest.raises(TargetProblem) as told:
        target_facts.read_machine(cut)
    assert told.value.code == "facts_unknown"


def test_a_fact_that_the_probe_prints_by_name_is_stored_and_can_be_compared():
    """What docs/adding-a-condition.md promises: nothing between the probe and the list knows it."""
    system = target_facts.read(
        f"{REPORT}\n== more\nclocksource\ttsc\nmitigations\toff\nsilent\t\n"
    )
    stored = asdict(system.operating_system)

    assert stored["more"] == {"clocksource": "tsc", "mitigations": "off"}
    at = ("more", "mitigations")
    assert (
        Fact("environment", "mitigations", "warns", fact_readers.text, at).read(stored)
        == "off"
    )
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    expected = {"clocksource": source.read_text().strip()} if source.exists() else {}
    more = probe().operating_system.more
    assert {
        name: value for name, value in more.items() if name == "clocksource"
    } == expected


def test_the_login_gives_names_and_no_values_but_those_of_the_locale(monkeypatch):
    for name, value in (
        ("PGPASSWORD", "secret"),
        ("LANG", "C"),
        ("MALLOC_TRIM_", "1\nPGX=2"),
    ):
        monkeypatch.setenv(name, value)
    more = probe().operating_system.more
    assert set(more["login_variables"].split()) >= {"PGPASSWORD", "MALLOC_TRIM_"}
    assert "LANG=C" in more["login_locale"].split()
    assert "secret" not in str(more)


# Lists of processors, as taskset and the kernel write them.


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", {0}),
        ("0-3,8", {0, 1, 2, 3, 8}),
        (" 0 - 1 , 1 ", {0, 1}),
        ("3,1,2", {1, 2, 3}),
        ("8191", {8191}),
    ],
)
def test_a_list_names_processors(text, numbers):
    assert cpus.parse(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ",",
        "1,",
        "a",
        "-1",
        "3-1",
        "0--3",
        "8192",
        "0-99999",
        "0-10:2",
        "0;reboot",
        "\u0663",
    ],
)
def test_what_is_no_list_is_refused(text):
    with pytest.raises(ValueError, match=r"list of CPUs|backwards|no CPU"):
        cpus.parse(text)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({0, 1, 2, 3, 8}, "0-3,8"),
        ({1, 2}, "1-2"),
        ({5}, "5"),
        ({9, 7}, "7,9"),
        (set(), ""),
    ],
)
def test_a_list_has_one_spelling(numbers, text):
    assert cpus.spelled(numbers) == text


def test_a_command_is_pinned_only_where_a_list_is_given():
    assert cpus.pinned("0-1") == ("taskset", "-c", "0-1")
    assert cpus.pinned("") == ()


# Two sockets of two cores with two threads each; Linux numbers the second threads last.
TWO_SOCKETS = [
    Thread(0, 0, 0, 0),
    Thread(1, 0, 1, 1),
    Thread(2, 1, 0, 0),
    Thread(3, 1, 1, 1),
    Thread(4, 0, 0, 0),
    Thread(5, 0, 1, 1),
    Thread(6, 1, 0, 0),
    Thread(7, 1, 1, 1),
]
ALL = frozenset(range(8))


def test_a_socket_is_filled_before_the_next_and_second_threads_come_last():
    assert choose(8, ALL, TWO_SOCKETS).cpus == (0, 2, 1, 3, 4, 6, 5, 7)


def test_each_level_holds_the_smaller_ones():
    chosen = [set(choose(number, ALL, TWO_SOCKETS).cpus) for number in range(1, 9)]
    assert all(small < large for small, large in pairwise(chosen))


def test_second_threads_are_counted():
    assert [
        choose(number, ALL, TWO_SOCKETS).second_threads for number in (4, 5, 8)
    ] == [0, 1, 4]


def test_of_a_core_whose_first_thread_is_not_to_be_had_the_second_is_a_core():
    allowed = frozenset({4, 1, 5})
    choice = choose(3, allowed, TWO_SOCKETS)
    assert (choice.cpus, choice.second_threads) == ((4, 1, 5), 1)


def test_a_machine_that_tells_no_cores_has_one_a_cpu():
    allowed, threads = read("0-1,3\n0,,,\n1,,,\n")
    assert choose(3, allowed, threads).cpus == (0, 1, 3)
    assert choose(3, allowed, threads).second_threads == 0


def test_lscpu_is_read_with_empty_fields():
    allowed, threads = read("0-1\n0,0,0,0\n1,1,,\n")
    assert allowed == {0, 1}
    assert threads == [Thread(0, 0, 0, 0), Thread(1, 1, 0, 0)]
