"""Forms that public posts and issue threads show: what is read in each, or how it is refused.

The texts are shortened, with numbers of our own.
"""

import json

import pytest

from runs.tools import reader, registry
from runs.tools.adapter import UnreadableOutput
from tests.unit.tools.reading import figures, sample

FIO = json.loads(sample("fio", "randrw8k_json.txt"))
SYSBENCH = sample("sysbench", "oltp_read_write.txt").decode()
HEAD = f"{SYSBENCH.partition(chr(10))[0]}\n\n"
FILES = sample("sysbench", "1.0.20_fileio.txt").decode()
CONTEXT = {"num_cpus": 8, "library_build_type": "release"}


TIMING = """Testing timing overhead for 3 seconds.
Per timing duration including loop overhead: 35.96 ns
"""
FSYNC_END = """
        fdatasync                          812.345 ops/sec    1231 usecs/op

Compare open_sync with different write sizes:
         1 * 16kB open_sync write          700.100 ops/sec    1428 usecs/op

Non-sync'ed 8kB writes:
        write                           301234.567 ops/sec       3 usecs/op
"""
FSYNC_FRAGMENT = """> fsync      85.130 ops/sec   11747 usecs/op
Non-sync'ed 8kB writes:
        write                           301234.567 ops/sec       3 usecs/op
"""


def benchmark(name, **fields):
    return {"name": name, "iterations": 9, "time_unit": "us", **fields}


def google(*rows):
    return json.dumps({"context": CONTEXT, "benchmarks": list(rows)})


def hyperfine(**fields):
    return json.dumps({"results": [{"command": "sleep 1", "mean": 1.5, **fields}]})


def on_its_way(report, seconds):
    """A report of --status-interval, as fio 3.33 writes it here."""
    return json.dumps(
        {**report, "jobs": [{**job, "eta": seconds} for job in report["jobs"]]}
    )


# Of each form: where it was found, the text, figures and levels.
READ = [
    (
        "lines",
        "names of several words, and rates by other words",
        "index build=12.5 s\na=10.5 ops/sec\nb=14.5 MB/sec\nc=3.5 rows/second\nset x = 5\n",
        {"index_build": 12.5, "a": 10.5, "b": 14.5, "c": 3.5},
        {},
    ),
    (
        "pg_test_timing",
        "the form of the manual of 16",
        TIMING,
        {"clock_read_time": 35.96},
        {"duration": 3},
    ),
    (
        "sysbench",
        "sysbench issue 305: --rate is printed without decimals",
        SYSBENCH.replace(
            "Number of threads", "Target transaction rate: 100/sec\nNumber of threads"
        ),
        {},
        {"rate": 100.0},
    ),
    (
        "sysbench",
        "sysbench 1.1: --warmup-time, --debug",
        SYSBENCH.replace(
            "Threads started!",
            "Warmup time: 10s\nDEBUG: Worker thread (#0) started\nThreads started!",
        ),
        {},
        {"warmup": 10.0},
    ),
    (
        "sysbench",
        "shardingsphere pull request 10245: prepare, run and cleanup in one text",
        f"{HEAD}Creating table 'sbtest1'...\n{SYSBENCH}{HEAD}Dropping table 'sbtest1'...\n",
        {},
        {},
    ),
    (
        "pgbench",
        "pgbench's README of 2006",
        (
            "number of clients: 4\nnumber of transactions per client: 100\n"
            "number of processed transactions: 400/400\n"
            "tps = 21.875015(including connections establishing)\n"
            "tps = 22.098827(excluding connections establishing)\n"
        ),
        {"tps": 22.098827, "transactions": 400},
        {"clients": 4},
    ),
    (
        "sysbench",
        "sysbench 1.1, fileio: no time, no events, no fairness",
        (
            f"{FILES.partition('File operations')[0]}\nThroughput:\n"
            "         read:  IOPS=0.00 0.00 MiB/s (0.00 MB/s)\n"
            "         write: IOPS=15273.01 238.64 MiB/s (250.23 MB/s)\n"
            "         fsync: IOPS=19538.85\n\nLatency (ms):\n         min:        0.00\n"
            "         avg:        0.11\n         max:       16.29\n         sum:    39811.91\n\n"
        ),
        {"write_iops": 15273.01, "write_bandwidth": 238.64, "latency_average": 0.11},
        {"mode": "random r/w"},
    ),
    ("sysbench", "fileio says what it does", FILES, {}, {"mode": "random r/w"}),
    (
        "fio",
        "fio issue 672: --status-interval, to its end",
        f"{on_its_way(FIO, 2**31 - 1)}\n{on_its_way(FIO, 3)}\n{json.dumps(FIO)}\n",
        {"read_iops": FIO["jobs"][0]["read"]["iops"]},
        {},
    ),
    (
        "fio",
        "fio issue 102: C prints what is not a number",
        json.dumps(FIO, indent=1).replace('"stddev": ', '"stddev": -nan, "was": '),
        {"read_iops": FIO["jobs"][0]["read"]["iops"]},
        {},
    ),
    (
        "fio",
        "--unified_rw_reporting=1",
        json.dumps(
            {**FIO, "jobs": [{"jobname": "a", "mixed": FIO["jobs"][0]["read"]}]}
        ),
        {"mixed_iops": FIO["jobs"][0]["read"]["iops"]},
        {},
    ),
    (
        "fio",
        "block size and pattern",
        json.dumps(FIO),
        {},
        {"bs": "8k", "rw": "randrw"},
    ),
    (
        "hyperfine",
        "hyperfine issue 110: no median to 1.5",
        hyperfine(times=[1.0, 1.2, 9.0]),
        {"elapsed": 1.2},
        {},
    ),
    (
        "google_benchmark",
        "google/benchmark issue 379: complexity",
        google(
            benchmark("BM_x/64", real_time=5.0, cpu_time=5.0),
            {
                "name": "BM_x_BigO",
                "real_coefficient": 1.3,
                "big_o": "N",
                "time_unit": "ns",
            },
            {"name": "BM_x_RMS", "rms": 0.02},
        ),
        {"bm_x_64_real_time": 0.005},
        {},
    ),
    (
        "google_benchmark",
        "aggregates to 1.1: mean and stddev alone",
        google(
            benchmark("BM_x_mean", real_time=7.0),
            benchmark("BM_x_stddev", real_time=0.1),
        ),
        {"bm_x_real_time": 0.007},
        {},
    ),
    (
        "go_tpc",
        "go-tpc ch: queries beside TPC-C",
        f"QphH: 44.1\n{sample('go_tpc', 'tpcc_run_plain.txt').decode()}",
        {"qphh": 44.1},
        {},
    ),
    (
        "lines",
        "blanks around the sign, and units of other spellings",
        "a = 5 msec\nb =6 qps\nc=7 μs\nd= 8 NOPM\n",
        {"a": 5.0, "b": 6.0, "c": 7.0, "d": 8.0},
        {},
    ),
    ("lines", "a folder in the name", "bench/a-1=5 ms\n", {"bench_a_1": 5.0}, {}),
    ("lines", "letters of any script", "挿入=5 ms\n", {"fc444af8": 5.0}, {}),
    (
        "benchbase",
        "OLTP-Bench: no goodput yet",
        json.dumps(
            {
                "DBMS Type": "postgres",
                "Benchmark Type": "tpcc",
                "Latency Distribution": {"Median Latency (microseconds)": 532},
                "Throughput (requests/second)": 1751.2,
            }
        ),
        {"throughput": 1751.2, "latency_p50": 0.532},
        {"benchmark": "tpcc"},
    ),
]
# Of each form: what the answer says.
REFUSED = [
    ("pgbench", "a gzip file as text", "\x1f\ufffd\x08\x00x", "compressed (gzip)"),
    ("sysbench", "a zstd file as bytes", b"\x28\xb5\x2f\xfdx", "compressed (zstd)"),
    (
        "fio",
        "its text, with a size of 20",
        "job: (g=0): rw=rw\n  iops=20\n  bw=20\n  lat=20\n",
        "no JSON of fio",
    ),
    (
        "sysbench",
        "its JSON hook",
        '[{"time": 1, "threads": 4, "tps": 100.5}]\n',
        "report hook",
    ),
    (
        "pgbench",
        "the source of a mail",
        "tps =3D 1\nlatency average =3D 2 ms=\n\na =3D b\n",
        "=3D",
    ),
    (
        "pg_test_fsync",
        "a few lines of a mail",
        FSYNC_FRAGMENT,
        "begins after the first test",
    ),
    ("pg_test_fsync", "its end", FSYNC_END, "begins after the first test"),
    ("lines", "printf without a line break", "tps=14203.5 tps", "no end"),
    (
        "lines",
        "what was counted down",
        "latency=-3.5 ms\n",
        "latency is below 0: -3.5 ms",
    ),
    ("lines", "an empty variable", "tps= tps\nlatency=5 ms\n", "No number: tps= tps"),
    (
        "lines",
        "a unit that says nothing of better",
        "e=5 errors/s\n",
        "add higher, lower",
    ),
    (
        "sysbench",
        "sysbench issue 483: the rate is too high",
        "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\nFATAL: The event queue is full.\n",
        "event queue",
    ),
    (
        "pgbench",
        "a wrong option",
        "pgbench: invalid option -- 'Z'\n",
        "invalid option -- 'Z'",
    ),
    (
        "pgbench",
        "YCSB",
        "[OVERALL], RunTime(ms), 9\n[OVERALL], Throughput(ops/sec), 98.9\n",
        "YCSB",
    ),
    (
        "go_test",
        "go test -bench, of which the end is missing",
        "BenchmarkX-8   \t 500\t  1234 ns/op\n",
        "neither with PASS nor with FAIL",
    ),
    (
        "fio",
        "fio issue 672: --status-interval",
        f"{json.dumps(FIO)}\n" * 3,
        "--status-interval",
    ),
    (
        "fio",
        "--status-interval, cut",
        f"{on_its_way(FIO, 9)}\n" * 2,
        "--status-interval",
    ),
    ("fio", "fio --output-format=terse", "3;fio-3.33;a;0;0;0;0;0;0;0;0;0\n", "terse"),
    (
        "go_tpc",
        "go-tpc pull request 12: the first versions",
        "NEW_ORDER - Takes(s): 79.9, Count: 13044, TPM: 9791.1, Avg(ms): 35, 99th(ms): 80\n",
        "without tpmC",
    ),
    (
        "go_tpc",
        "go-tpc ch, stopped",
        (
            "[Current] NEW_ORDER - Takes(s): 10.0, Count: 99, TPM: 594.0, Sum(ms): 99.0, "
            "Avg(ms): 1.0, 50th(ms): 1.0, 90th(ms): 1.0, 95th(ms): 1.0, 99th(ms): 1.0, "
            "99.9th(ms): 1.0, Max(ms): 1.0\n[Current] Q1: 4.50s\n"
        ),
        "without tpmC",
    ),
    ("go_tpc", "go-tpc tpch", "[Summary] Q1: 4.50s\n[Summary] Q2: 0.51s\n", "TPC-H"),
    (
        "hammerdb",
        "HammerDB pull request 356",
        "Vuser 1:TEST RESULT : System achieved 253792 NOPM from 767954 MariaDB TPM\n",
        "MariaDB",
    ),
    ("hyperfine", "1.0 to 1.3 of one run", hyperfine(), "median"),
    (
        "hyperfine",
        "a command ended by a signal",
        hyperfine(median=1, exit_codes=[None]),
        "error",
    ),
    (
        "pg_test_timing",
        "virtual machines",
        "Testing timing overhead for 3 seconds.\nDetected clock going backwards in time.\n",
        "backwards",
    ),
    (
        "pytest_benchmark",
        "a test that failed has a median of 0",
        json.dumps(
            {
                "benchmarks": [
                    {"fullname": "a.py::b", "has_error": True, "stats": {"median": 0}}
                ]
            }
        ),
        "a.py::b failed",
    ),
]


@pytest.mark.parametrize(
    ("tool", "text", "expected", "levels"),
    [pytest.param(tool, *rest, id=where) for tool, where, *rest in READ],
)
def test_a_public_form_is_read(tool, text, expected, levels):
    reading = reader.read(registry.find(tool), {"stdout": text})

    assert reading.status == "finished", reading.reasons
    assert expected.items() <= figures(reading).items()
    assert levels.items() <= reading.levels.items()


@pytest.mark.parametrize(
    ("tool", "text", "word"),
    [pytest.param(tool, *rest, id=w) for tool, w, *rest in REFUSED],
)
def test_a_public_form_is_refused_by_its_cause(tool, text, word):
    answer = answer_to(tool, text)

    assert isinstance(answer, UnreadableOutput) or answer.measurements == ()
    assert word in repr(answer)


def test_a_failure_may_be_on_standard_error_alone():
    said = "FATAL: unable to connect to PostgreSQL server, aborting...\n"

    read = reader.read(registry.find("sysbench"), {"stdout": "", "stderr": said})

    assert said.strip() in {reason.message for reason in read.reasons}


PGBENCH_RUN = (
    "scaling factor: 1\nnumber of clients: 10\nnumber of threads: 1\nduration: 60 s\n"
    "number of transactions actually processed: 52003\nlatency average = 11.538 ms\n"
    "initial connection time = 20.5 ms\ntps = 866.712345 (without initial connection time)\n"
)


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("unreadable_figure", "11.538 ms", "-nan ms"),
        ("unreadable_figure", "= 20.5", "= 20,5"),
        ("contradiction", "11.538", "1153.8"),
        ("ended_early", "52003", "520"),
    ],
)
def test_a_run_of_pgbench_that_contradicts_itself_is_not_finished(code, old, new):
    assert answer_to("pgbench", PGBENCH_RUN).status == "finished"

    read = answer_to("pgbench", PGBENCH_RUN.replace(old, new))

    assert read.status != "finished"
    assert code in {reason.code for reason in read.reasons}


def answer_to(tool, text):
    try:
        return reader.read(registry.find(tool), {"stdout": text})
    except UnreadableOutput as refused:
        return refused
