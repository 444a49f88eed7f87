"""The time of a transaction in parts: numbers made by hand, and what cannot be split."""

from dataclasses import replace

import pytest

from runs.analysis.why import account, counters, parts
from runs.analysis.why.account import Account, Load, Queued

# Two clients for 10 s, 1000 transactions: 20 ms each.
PLAIN = Account(
    transactions=1000,
    tps=100,
    clients=2,
    server=5.0,
    client=2.0,
    backends=Queued(run=4.4, wait=2.2, number=2, seconds=19.6),
    others=Queued(run=0.2, wait=0.1, number=1, seconds=12.0),
    threads=Queued(run=1.9, wait=0.95, number=1, seconds=9.8),
    duration=10.2,
)


def document(**changes):
    names = ("kind", "title", "first", "last", "run", "wait")
    processes = [
        dict(zip(names, row, strict=True))
        for row in (
            ("server", "client backend", 10.2, 20.0, 2.2, 1.1),
            ("server", "client backend", 10.2, 20.0, 2.2, 1.1),
            ("server", "client backend", 20.6, 20.8, 9.0, 9.0),
            ("server", "checkpointer", 9.0, 21.0, 0.2, 0.1),
            ("load", "", 10.2, 20.0, 1.9, 0.95),
        )
    ]
    usage = {
        "db": {
            "seconds": 10.0,
            "servers": 5.0,
            "servers_in_kernel": 1.25,
            "generator": 2.0,
        }
    }
    whole = {"form": 1, "spans": [[10.0, 20.2]], "usage": usage, "processes": processes}
    return {**whole, **changes}


def test_the_parts_of_a_run_add_up_to_its_time():
    found = parts.split(PLAIN)
    # All but the others' 0.2 s is that of backends, of which 4.4 s was seen.
    assert found.server == pytest.approx(0.0048)
    assert found.server_queue == pytest.approx(2.2 * 4.8 / 4.4 / 1000)
    assert found.client == pytest.approx(0.002)
    assert found.client_queue == pytest.approx(0.001)
    known = found.server + found.server_queue + found.client + found.client_queue
    assert known + found.blocked == pytest.approx(0.020)
    assert (found.cpu, found.limits) == (0.005, ())
    assert found.errors["blocked"] == pytest.approx(0.036 * 0.020)


def test_a_document_is_read_without_the_sessions_around_the_load():
    load = Load(clients=2, tps=100, transactions=1000)
    found = account.read(document(), load, "db")
    rounded = {"duration": round(found.duration, 6), "backends": None}
    assert found.clients_a_thread == 2  # of one thread
    rounded["clients_a_thread"] = 1.0
    assert found.backends.seconds == pytest.approx(PLAIN.backends.seconds)
    assert replace(found.backends, seconds=19.6) == PLAIN.backends
    assert replace(found, **rounded) == replace(PLAIN, **rounded)


@pytest.mark.parametrize(
    ("changes", "limit", "unknown"),
    [
        ({"reconnects": True}, "reconnects", "server_queue"),
        ({"backends": None}, "no_queue", "server_queue"),
        ({"backends": Queued(1.0, 9.0, 2)}, "backends_unseen", "server_queue"),
        ({"client": None, "is_elsewhere": True}, "client_elsewhere", "client"),
        ({"server": None}, "no_usage", "server"),
        ({"clients_a_thread": 2.0}, "threads_shared", None),
        ({"is_paced": True}, "paced", None),
        ({"has_pooler": True}, "pooler", None),
        ({"workers": Queued(2.0, 1.0, 2)}, "parallel", None),
    ],
)
def test_what_cannot_be_split_is_named_and_stays_in_the_rest(changes, limit, unknown):
    found = parts.split(replace(PLAIN, **changes))
    assert limit in found.limits
    if unknown:
        assert getattr(found, unknown) is None
    known = [getattr(found, name) or 0.0 for name in parts.PARTS]
    assert sum(known) == pytest.approx(found.seconds)


def test_what_client_and_server_do_at_the_same_time_counts_once():
    busy = replace(
        PLAIN,
        backends=Queued(4.4, 4.4, 2, 19.6),
        client=13.0,
        threads=Queued(13.0, 0.0, 2),
    )
    found = parts.split(busy)
    left = 0.020 - found.server - found.server_queue
    assert found.client == pytest.approx(left)
    assert found.overlap == pytest.approx(0.013 - left)
    assert (found.blocked, found.limits) == (pytest.approx(0.0), ("overlap",))


def test_workers_stand_beside_the_leader_and_not_in_its_time():
    plan = {"Plan": {"Node Type": "Aggregate", "Plans": [{"Workers Planned": 1}]}}
    both = replace(
        PLAIN, plans=[plan], duration=10.0, backends=Queued(2.4, 1.2, 2, 19.2)
    )
    found = parts.split(both)
    # They were seen for 9.6 s of the 10 s of the load.
    assert found.server == pytest.approx(2.4 / 0.96 / 1000)
    assert found.workers == pytest.approx((4.8 - 2.5) / 1000)
    assert "parallel" in found.limits


def test_a_difference_pairs_rounds_and_says_which_part_moved():
    a = [parts.split(replace(PLAIN, round=n, tps=100 + n)) for n in (1, 2, 3)]
    slower = replace(PLAIN, server=9.0, backends=Queued(8.4, 2.2, 2), tps=80)
    b = [parts.split(replace(slower, round=n, tps=80 + n)) for n in (1, 2, 3)]
    found = parts.compare(a, b)
    assert found.moved[0] == "server"
    assert found.by_part["server"].value == pytest.approx(0.004)
    assert sum(each.value for each in found.by_part.values()) == pytest.approx(
        found.seconds.value
    )
    assert found.seconds.is_apart
    # 2.2 + 0.95 of 20 ms were spent in the queue.
    assert found.is_crowded


def test_a_queue_that_a_run_does_not_know_is_in_what_is_blocked_of_all_of_them():
    """Else a side whose queue is known would look less blocked, and one without it unqueued."""
    known = [parts.split(replace(PLAIN, round=n)) for n in (1, 2)]
    unseen = replace(PLAIN, backends=Queued(run=1.0, wait=0.4, number=2, seconds=19.6))
    unknown = [parts.split(replace(unseen, round=n)) for n in (1, 2)]
    assert unknown[0].server_queue is None
    found = parts.compare(unknown, known)
    assert set(found.by_part) == {"client", "client_queue", "server"}.union({"blocked"})
    assert found.by_part["blocked"].value == pytest.approx(
        unknown[0].server - known[0].server, abs=1e-4
    )
    assert found.queues == (None, pytest.approx(known[0].queue_share))
    assert found.limits == ("backends_unseen",)


def test_one_round_a_side_has_no_interval():
    found = parts.compare([parts.split(PLAIN)], [parts.split(PLAIN)])
    assert (found.seconds.value, found.seconds.low) == (0.0, None)


def of_counters(version, **views):
    made = replace(PLAIN, counters=views)
    return counters.count_per_transaction(made, version)


def test_counters_are_paired_across_versions_that_moved_them():
    old = of_counters(
        160000,
        pg_stat_bgwriter={"": {"checkpoints_req": 1000.0}},
        pg_stat_wal={"": {"wal_sync": 1000.0}},
    )
    new = of_counters(
        180000,
        pg_stat_checkpointer={"": {"num_requested": 1000.0}},
        pg_stat_io={
            "client backend wal normal": {"fsyncs": 900.0, "write_bytes": 5.0},
            "walwriter wal normal": {"fsyncs": 100.0},
        },
    )
    assert (
        old
        == new
        == {("checkpoints", "", "requested"): 1.0, ("pg_stat_wal", "", "wal_sync"): 1.0}
    )
    assert counters.moved([old, old], [new, new], (160000, 180000)) == []


def test_a_counter_moved_if_all_rounds_lie_apart_and_both_versions_have_it():
    few, many = (
        {"public t": {"seq_tup_read": n, "n_tup_newpage_upd": n}} for n in (10.0, 500.0)
    )
    a = of_counters(150000, pg_stat_user_tables=few)
    b = of_counters(170000, pg_stat_user_tables=many)
    found = counters.moved([a, a], [b, b], (150000, 170000))
    assert [(each.column, each.a, each.b) for each in found] == [
        ("seq_tup_read", 0.01, 0.5)
    ]
    assert counters.moved([a, b], [b, a], (150000, 170000)) == []
    assert counters.moved([a], [b], (150000, 170000)) == []
