"""Files of monitors beside an output become series of the machine."""
# ruff: noqa: E501 - samples are wide.

import pytest

from runs.tools import monitors, reader, registry
from tests.unit.tools.pgbench.samples import sample as pgbench_sample
from tests.unit.tools.reading import sample

OUTPUT = pgbench_sample("18.6/a_tpcb").stdout


def series_of(**files):
    reading = reader.read(registry.find("pgbench"), {"stdout": OUTPUT, **files})
    return {each.name: each for each in reading.series}, reading


@pytest.mark.parametrize("name", ["json.txt", "xk_1_3.txt", "xk_dates.txt"])
def test_iostat_is_read_without_its_first_report(name):
    found, reading = series_of(iostat=sample("iostat", name))

    assert reading.status == "finished"
    assert {
        "cpu_user",
        "cpu_idle",
        "disk_read_vda",
        "disk_write_vda",
        "disk_util_vda",
    } <= set(found)
    assert len(found["disk_write_vda"].values) == 2
    assert found["disk_write_vda"].unit == "kB/s"


def test_the_figures_are_those_printed():
    found, _reading = series_of(iostat=sample("iostat", "xk_1_3.txt"))

    assert found["disk_write_vda"].values == (98752.0, 72518.81)
    assert found["cpu_user"].values == (83.34, 78.92)
    assert found["disk_util_vda"].values == (6.0, 6.34)


def test_vmstat_and_sar_come_too_and_no_log_is_taken_for_one_of_pgbench():
    files = {
        "db1-vmstat.log": sample("vmstat", "1_4.txt"),
        "meminfo.txt": b"MemTotal: 1 kB\n",
    }
    found, reading = series_of(**files)
    of_sar, _reading = series_of(sar=sample("sar", "json_all.txt"))

    assert found["run_queue"].interval == 1
    assert "cpu_idle" in of_sar
    assert reading.status == "finished"
    assert [each.message for each in reading.notes] == [
        "meminfo.txt is kept, and not read."
    ]


def test_a_monitor_that_cannot_be_read_costs_no_figure():
    words = (
        sample("sar", "json_cpu_mem_disk.txt").replace(b": 0.00", b": null").decode()
    )
    found, reading = series_of(vmstat="nothing", iostat="{", sar="{}", sadf=words)

    assert reading.status == "finished"
    assert len(reading.notes) == 3
    assert "cpu_idle" not in found


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("vmstat", "vmstat"),
        ("raw/vmstat.1", "vmstat"),
        ("IOSTAT.json", "iostat"),
        ("log", ""),
    ],
)
def test_a_file_is_known_by_a_word_of_its_name(name, tool):
    assert monitors.tool_of(name) == tool


def values(name, content):
    found, notes = monitors.read({name: content})
    assert not notes
    return {each.name: each.values for each in found}


def test_mpstat_is_read_as_text_and_as_json():
    of_text = values("mpstat", sample("mpstat", "1_3.txt"))
    of_json = values("mpstat.json", sample("mpstat", "json.txt"))

    assert of_text["cpu_user"] == (85.23, 94.39, 84.58)  # usr and nice
    assert len(of_json["cpu_idle"]) == 2


def test_pidstat_adds_up_the_processes_of_a_program():
    found = values("pidstat.log", sample("pidstat", "u_C_postgres.txt"))
    of_lines = values("pidstat.log", sample("pidstat", "h_u_d_l.txt"))

    assert found == {"process_cpu_postgres": (19.04, 24.0)}
    assert {"process_cpu_postgres", "process_write_postgres"} <= of_lines.keys()


LINUX = "Linux 2.6.32 (db1) \t03/04/15 \t_x86_64_\t(4 CPU)\n\n"
CPU = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
AT_FIRST = "1.00 0.00 1.00 1.00 0.00 97.00\n\n"
BUSY = "10.00 0.00 5.00 5.00 0.00 80.00\n\n"
SECTORS = (
    "Device: rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz await svctm %util\n"
)
BLOCKS = "Device: tps Blk_read/s Blk_wrtn/s Blk_read Blk_wrtn\n"
# Of each form what is in it, by hand from the tools' manuals and public logs.
FORMS = [
    (
        "iostat",  # 9 with -x
        (
            f"{LINUX}{CPU}{AT_FIRST}{SECTORS}sda 0 1 1 2 16 32 16 0.01 1 0.5 0.15\n\n"
            f"{CPU}{BUSY}{SECTORS}sda 0 1 100 200 1600 3200 16 0.1 1.5 0.5 15\n\n"
        ),
        {"cpu_user": (10.0,), "disk_read_sda": (800.0,), "disk_write_sda": (1600.0,)},
    ),
    (
        "iostat",  # 7
        (
            f"{LINUX}{CPU}{AT_FIRST}{BLOCKS}sda 5 16 32 1000 2000\n\n"
            f"{CPU}{BUSY}{BLOCKS}sda 300 1600 3200 1600 3200\n\n"
        ),
        {"cpu_idle": (80.0,), "disk_read_sda": (800.0,), "disk_write_sda": (1600.0,)},
    ),
    (
        "iostat",  # macOS
        (
            "              disk0               disk4       cpu    load average\n"
            "    KB/t  tps  MB/s     KB/t  tps  MB/s  us sy id   1m   5m   15m\n"
            "   37.13  105  3.80   127.34   11  1.31  10  4 86  2.79 2.33 2.18\n"
            "    8.00 1000  8.00     0.00    0  0.00  40 20 40  2.65 2.31 2.17\n"
        ),
        {"cpu_user": (40.0,), "cpu_idle": (40.0,), "disk_transfer_disk0": (8192.0,)},
    ),
    (
        "vm_stat.txt",  # macOS
        (
            "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n"
            "    free   active file-backed anonymous\n   64000   432859 320000 500000\n"
        ),
        {"memory_free": (1000.0,), "memory_cached": (5000.0,)},
    ),
    (
        "mpstat",  # 7, in a locale of 12 hours
        (
            f"{LINUX}11:59:59 PM  CPU   %user   %nice    %sys %iowait    %irq %soft %steal %idle\n"
            "12:00:00 AM  all   10.00    1.00    5.00    2.00    0.50    0.50    0.00   81.00\n"
            "12:00:01 AM  all   12.00    1.00    5.00    2.00    0.50    0.50    0.00   79.00\n"
        ),
        {"cpu_user": (11.0, 13.0), "cpu_system": (6.0, 6.0)},
    ),
    (
        "mpstat",  # a Japanese locale
        (
            f"{LINUX}17時27分54秒  CPU    %usr   %nice    %sys   %idle\n"
            "17時27分55秒  all   10.00    1.00    5.00   84.00\n"
        ),
        {"cpu_user": (11.0,), "cpu_idle": (84.0,)},
    ),
    (
        "pidstat",  # 10 with -h
        (
            f"{LINUX}#      Time       PID    %usr %system  %guest    %CPU   CPU  Command\n"
            " 1425445567      4711   50.00    5.00    0.00   55.00     1  postgres\n\n"
            " 1425445568      4711   40.00    5.00    0.00   45.00     1  postgres\n"
            " 1425445568      4712   10.00    5.00    0.00   15.00     1  postgres\n"
        ),
        {"process_cpu_postgres": (55.0, 60.0)},
    ),
    (
        "vmstat",  # FreeBSD, with times before each line
        (
            "10:00:00 procs    memory    page     disks     faults       cpu\n"
            "10:00:00 r b w    avm  fre  flt  re ad0 ad1   in    sy    cs us sy id\n"
            "10:00:00 0 0 0   502M 1.2G    80   0   5   0   10   200   300  1  1 98\n"
            "10:00:01 3 0 0   502M 1.2G  8000   0  10   0  100  2000  3000 40 10 50\n"
        ),
        {"cpu_user": (40.0,), "cpu_system": (10.0,), "run_queue": (3.0,)},
    ),
    (
        "vmstat",  # OpenBSD
        (
            " r   s   avm     fre  flt sd0  int   sys   cs us sy id\n"
            " 1 60   150M   500M   123   1   12   345   67  1  1 98\n"
            " 2 60   150M   500M  1230   1   12   345   67 40 10 50\n"
        ),
        {"cpu_user": (40.0,)},
    ),
    (
        "iostat",  # 12 with -x of FreeBSD
        2
        * "   extended device statistics\ndevice r/s w/s kr/s kw/s ms/t qlen %b\nnda0 1 2 8.0 16.0 3 0 15\n",
        {
            "disk_read_nda0": (8.0,),
            "disk_util_nda0": (15.0,),
            "disk_await_nda0": (3.0,),
        },
    ),
    (
        "iostat",  # 12 with --human, and -s
        2
        * f"{CPU}40.0% 0.0% 10.0% 5.0% 0.0% 45.0%\n\n tps kB_read/s kB/s Device\n3.00 1.5M 80.0k sda\n\n",
        {"cpu_user": (40.0,), "disk_read_sda": (1536.0,), "disk_transfer_sda": (80.0,)},
    ),
    (
        "iostat",  # a German locale
        2
        * f"{CPU}40,00 0,00 10,00 5,00 0,00 45,00\n\nDevice rkB/s %util\nsda 800,00 15,00\n\n",
        {"cpu_user": (40.0,), "disk_read_sda": (800.0,)},
    ),
    (
        "sar",  # a German locale
        "10:00:00 CPU %user %system %idle\n10:00:01 all 40,00 10,00 50,00\n",
        {"cpu_user": (40.0,), "cpu_idle": (50.0,)},
    ),
    (
        "sadf.csv",  # -d
        (
            "# hostname;interval;timestamp;CPU;%user;%idle\ndb1;1;2024-03-01 10:00:01 UTC;-1;40.00;45.00\n"
            "# hostname;interval;timestamp;ldavg-1;ldavg-5\ndb1;1;2024-03-01 10:00:01 UTC;7.00;8.00\n"
            "# hostname;interval;timestamp;DEV;rkB/s\ndb1;1;2024-03-01 10:00:01 UTC;sda;9.00\n"
        ),
        {"cpu_user": (40.0,), "cpu_idle": (45.0,), "disk_read_sda": (9.0,)},
    ),
    (
        "sadf",  # -p
        "".join(
            f"db1\t1\t2024-03-01 10:00:0{at} UTC\t{row}\n"
            for at in (1, 2)
            for row in (
                "all\t%user\t40.00",
                "-\tkbmemfree\t1024",
                "-\tkbdirty\t7",
                "sda\trkB/s\t9.00",
            )
        ),
        {
            "cpu_user": (40.0, 40.0),
            "memory_free": (1.0, 1.0),
            "disk_read_sda": (9.0, 9.0),
        },
    ),
    (
        "sar.txt",
        (
            f"{LINUX}17:06:07  CPU  %user  %nice  %system  %iowait  %steal  %idle\n"
            "17:06:08  all  10.00  0.00  5.00  2.00  0.00  83.00\n\n"
            "17:06:07  DEV  tps  rkB/s  wkB/s  await  %util\n"
            "17:06:08  sda  1.00  8.00  16.00  1.00  12.00\n\n"
            "Average:  CPU  %user  %nice  %system  %iowait  %steal  %idle\n"
            "Average:  all  90.00  0.00  5.00  2.00  0.00  3.00\n"
        ),
        {"cpu_user": (10.0,), "disk_write_sda": (16.0,), "disk_util_sda": (12.0,)},
    ),
]


@pytest.mark.parametrize(("name", "text", "expected"), FORMS)
def test_older_and_other_systems_are_read(name, text, expected):
    found = values(name, text)

    assert {each: found.get(each) for each in expected} == expected
