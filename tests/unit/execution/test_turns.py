"""One run works at a time, in an order that is drawn for each round."""

import asyncio
from threading import Thread

import pytest

from runs.execution import turns
from runs.execution.turns import END, PREPARE, Turns, slice_of

RUNS = (11, 12, 13)


class Recorded:
    """What happened, and how many worked at the same time at most."""

    def __init__(self):
        self.steps = []
        self.most = self.now = 0

    async def work(self, run, point):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.steps.append((run, point))
        await asyncio.sleep(0)
        self.now -= 1


def executed(taking_turns, acts):
    """Each run in a thread with an event loop of its own, as workers do."""
    threads = [Thread(target=asyncio.run, args=[act()]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [thread for thread in threads if thread.is_alive()] == []


def run_of(taking_turns, recorded, run, rounds, leaves_after=None):
    async def act():
        points = [PREPARE, *map(slice_of, range(1, rounds + 1))]
        for point in points:
            await taking_turns.reached(run, point)
            await recorded.work(run, point)
            if point == leaves_after:
                taking_turns.leave(run)
                return
        await taking_turns.reached(run, END)
        taking_turns.leave(run)

    return act


def test_runs_prepare_one_after_the_other_and_then_take_turns():
    taking_turns, recorded = Turns(RUNS, "seed"), Recorded()

    executed(
        taking_turns, [run_of(taking_turns, recorded, run, rounds=8) for run in RUNS]
    )

    assert recorded.most == 1
    assert [point for _run, point in recorded.steps] == sorted(
        point for _run, point in recorded.steps
    )
    for number in range(1, 9):
        of_round = [run for run, point in recorded.steps if point == slice_of(number)]
        assert of_round == taking_turns.order(number)


def test_the_order_is_drawn_for_each_round_and_can_be_had_again():
    orders = [Turns(RUNS, "7/1").order(number) for number in range(1, 40)]

    assert orders == [
        Turns(reversed(RUNS), "7/1").order(number) for number in range(1, 40)
    ]
    assert {tuple(order) for order in orders} > {RUNS, RUNS[::-1]}
    assert orders != [Turns(RUNS, "7/2").order(number) for number in range(1, 40)]


def test_the_others_go_on_without_a_run_that_leaves():
    taking_turns, recorded = Turns(RUNS, "seed"), Recorded()
    acts = [run_of(taking_turns, recorded, run, rounds=5) for run in RUNS[:2]]
    acts.append(
        run_of(taking_turns, recorded, RUNS[2], rounds=5, leaves_after=slice_of(2))
    )

    executed(taking_turns, acts)

    assert recorded.most == 1
    for run in RUNS[:2]:
        assert (run, slice_of(5)) in recorded.steps
    assert (RUNS[2], slice_of(3)) not in recorded.steps


def test_a_run_whose_wait_is_cancelled_holds_up_the_others_until_it_leaves():
    taking_turns = Turns((1, 2), "seed")

    async def act():
        waiting = asyncio.create_task(taking_turns.reached(1, slice_of(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other = asyncio.create_task(taking_turns.reached(2, slice_of(1)))
        await asyncio.sleep(0.05)
        assert not other.done()
        taking_turns.leave(1)
        await asyncio.wait_for(other, timeout=60)

    asyncio.run(act())


def test_points_are_in_the_order_of_a_run():
    points = [PREPARE, slice_of(1), slice_of(2), END]

    assert points == sorted(points)
    assert turns.slice_of(10) > turns.slice_of(9)


def test_no_turn_comes_while_a_run_that_is_left_to_another_worker_may_be_measuring():
    taking_turns = Turns(RUNS, "seed")
    first, *others = taking_turns.order(1)

    async def act():
        waiting = [
            asyncio.create_task(taking_turns.reached(run, slice_of(1)))
            for run in (first, *others)
        ]
        await waiting[0]
        taking_turns.stop()
        taking_turns.leave(first)
        for _tick in range(20):
            await asyncio.sleep(0.001)
        assert [task.done() for task in waiting[1:]] == [False, False]
        for task in waiting[1:]:
            task.cancel()
        await asyncio.gather(*waiting[1:], return_exceptions=True)

    asyncio.run(act())


def test_a_run_waits_in_vain_once_another_is_left_to_another_worker():
    taking_turns = Turns((1, 2), "seed")
    assert not taking_turns.is_in_vain(2)

    async def act():
        waiting = asyncio.create_task(taking_turns.reached(2, slice_of(1)))
        await asyncio.sleep(0)
        assert not taking_turns.is_in_vain(2)
        taking_turns.stop()
        taking_turns.leave(1)
        assert taking_turns.is_in_vain(2)
        assert not taking_turns.is_in_vain(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(act())


def test_the_order_of_those_that_are_left_is_the_same_without_one_that_has_ended():
    whole, rest = Turns(RUNS, "7/1"), Turns(RUNS[:2], "7/1")

    for number in range(1, 40):
        assert [run for run in whole.order(number) if run in RUNS[:2]] == rest.order(
            number
        )
