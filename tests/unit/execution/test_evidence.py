"""Tables of what strace printed."""

from runs.execution.evidence import calls, stacks

COUNTS = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.300000           7     40000      2000 futex
 40.00    0.200000           9     20000           fdatasync
------ ----------- ----------- --------- --------- ----------------
100.00    0.500000           8     60000      2000 total
"""
STACKS = """11 futex(0x7f, FUTEX_WAKE, 1) = 1
 > /lib/libc.so.6(sem_post+0x5a) [0x8d]
 > /usr/bin/postgres(PGSemaphoreUnlock+0xe) [0x2]
 > /usr/bin/postgres(LWLockRelease+0xe2) [0x3]
12 futex(0x7f, FUTEX_WAIT, 0 <unfinished ...>
11 futex(0x7f, FUTEX_WAKE, 1) = 1
 > /lib/libc.so.6(sem_post+0x5b) [0x8e]
 > /usr/bin/postgres(PGSemaphoreUnlock+0xe) [0x2]
 > /usr/bin/postgres(LWLockRelease+0xe3) [0x3]
12 <... futex resumed>) = 0
 > /usr/bin/postgres(PGSemaphoreLock+0x1) [0x9]
12 +++ exited with 0 +++
"""


def test_calls_have_their_share_of_errors():
    columns, rows = calls(COUNTS)
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    assert [(each["call"], each["calls"], each["failed_share"]) for each in found] == [
        ("futex", "40000", "5.0"),
        ("fdatasync", "20000", "0.0"),
    ]


def test_equal_stacks_are_counted_by_functions_and_an_interrupted_call_by_its_second_part():
    _columns, rows = stacks(STACKS)
    assert rows == [
        ["2", "futex", "sem_post < PGSemaphoreUnlock < LWLockRelease"],
        ["1", "futex", "PGSemaphoreLock"],
    ]


def test_nothing_seen_is_no_row():
    assert calls("") == (calls("")[0], [])
    assert stacks("strace: Process 12 attached\n")[1] == []
