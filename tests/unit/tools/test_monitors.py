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
        "db1-vmstat.log names no times: its samples are taken as one second apart.",
        "meminfo.txt is kept, and not read.",
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
    assert {note.code for note in notes} <= {"monitor_interval_assumed"}
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
    *(
        (
            "mpstat",  # locales of Japan, China, Taiwan, Korea, Australia
            (
                f"{LINUX}{clock % 54}  CPU    %usr   %nice    %sys   %idle\n"
                f"{clock % 55}  all   10.00    1.00    5.00   84.00\n"
            ),
            {"cpu_user": (11.0,), "cpu_idle": (84.0,)},
        )
        for clock in (
            "17時27分%d秒",
            "17时27分%d秒",
            "17時27分%d秒",
            "17시 27분 %d초",
            "05:27:%d pm",
        )
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


def intervals(name, content):
    """(start, interval, values) of the processors' idle time, and the codes of the notes."""
    found, notes = monitors.read({name: content})
    (idle,) = (each for each in found if each.name == "cpu_idle")
    return (idle.start, idle.interval, idle.values), [note.code for note in notes]


def iostat(*clocks):
    reports = (
        f"{clock}\n{CPU}{10 + place}.00 0.00 5.00 0.00 0.00 {85 - place}.00\n\n"
        "Device rkB/s %util\nsda 800.00 15.00\n\n"
        for place, clock in enumerate(clocks)
    )
    return LINUX + "".join(reports)


@pytest.mark.parametrize(
    "clocks",
    [
        ("03/04/25 05:06:07", "03/04/25 05:06:12", "03/04/25 05:06:17"),
        ("03/04/2025 11:59:53 PM", "03/04/2025 11:59:58 PM", "03/05/2025 12:00:03 AM"),
        tuple(f"2025-03-04T05:06:{second}+0000" for second in (10, 15, 20)),
        tuple(f"04.03.2025 05:06:{second}" for second in (10, 15, 20)),
        tuple(f"2025年03月04日 05时06分{second}秒" for second in (10, 15, 20)),
        tuple(f"2025년 03월 04일 05시 06분 {second}초" for second in (10, 15, 20)),
        tuple(f"Time: 05:06:{second} AM" for second in (10, 15, 20)),
    ],
)
def test_reports_of_iostat_are_as_far_apart_as_their_times(clocks):
    expected = (5.0, 5.0, (84.0, 83.0))

    assert intervals("iostat", iostat(*clocks)) == (expected, [])


def test_a_single_report_of_iostat_has_its_interval():
    text = iostat("03/04/25 05:06:07", "03/04/25 05:06:17")

    assert intervals("iostat", text) == ((10.0, 10.0, (84.0,)), [])


def test_reports_of_iostat_as_json_are_as_far_apart_as_their_times():
    text = sample("iostat", "json.txt").decode()
    wider = text.replace("20:43:23", "20:43:32").replace("20:43:24", "20:43:42")

    (start, interval, values), codes = intervals("iostat", wider)
    assert (start, interval, len(values), codes) == (10.0, 10.0, 2, [])


@pytest.mark.parametrize(
    "clocks",
    [("", "", ""), ("05:06:07", "", "05:06:17"), ("05:06:17", "05:06:12", "05:06:07")],
)
def test_where_not_all_reports_have_times_a_second_is_assumed_and_said(clocks):
    expected = (1.0, 1.0, (84.0, 83.0))

    assert intervals("iostat", iostat(*clocks)) == (
        expected,
        ["monitor_interval_assumed"],
    )


VMSTAT = (
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st"
)
ROW = " 2  0      0 204800   8580 102400    0    0  3348 10827 1389 6948  1  1 %d  0  0"


def vmstat(before="", behind="", free="204800"):
    """Three lines, their times five seconds apart."""
    lines = [f"{before % 10 if before else ''}{VMSTAT}{'     UTC' if behind else ''}"]
    for place, second in enumerate((10, 15, 20)):
        row = (ROW % (98 - place)).replace("204800", free)
        lines.append(
            (before % second if before else "")
            + row
            + (behind % second if behind else "")
        )
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    "times",
    [
        {"behind": " 2025-03-04 05:06:%d"},
        {"before": "05:06:%d "},
        {"before": "Mar 04 05:06:%d "},
        {"before": "2025-03-04T05:06:%d.123456Z "},
    ],
)
def test_lines_of_vmstat_are_as_far_apart_as_their_times(times):
    assert intervals("vmstat", vmstat(**times)) == ((5.0, 5.0, (97.0, 96.0)), [])


def test_lines_of_vmstat_without_times_are_taken_as_a_second_apart():
    expected = (1.0, 1.0, (97.0, 96.0))

    assert intervals("vmstat", vmstat()) == (expected, ["monitor_interval_assumed"])


def test_memory_that_may_be_in_mib_is_left_out():
    """Of a machine with 64 GiB, by vmstat -S M: 60,000 MiB or 60 MiB are free."""
    text = vmstat(behind=" 2025-03-04 05:06:%d", free="60000")
    text = text.replace(" 8580 102400", "  120   4100")
    found, notes = monitors.read({"vmstat": text})

    assert {each.name for each in found} >= {"cpu_idle", "disk_read"}
    assert not [each for each in found if each.name.startswith("memory_")]
    assert [note.code for note in notes] == ["monitor_not_read"]
    assert "-S M" in notes[0].message


def test_memory_of_a_small_machine_is_kept():
    """256 MiB, in KiB: most of it is cached."""
    text = vmstat(free="9000").replace(" 8580 102400", "  800 150000")
    found, _notes = monitors.read({"vmstat": text})

    memory = {each.name: each.values for each in found if "memory" in each.name}
    assert memory == {
        "memory_free": (8.789, 8.789),
        "memory_cached": (146.484, 146.484),
    }
