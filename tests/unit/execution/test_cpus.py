"""Lists of processors, as taskset and the kernel write them."""

from itertools import pairwise

import pytest

from runs.execution import cpus
from runs.execution.cores import Thread, choose, read


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
    [({0, 1, 2, 3, 8}, "0-3,8"), ({1, 2}, "1-2"), ({5}, "5"), ({9, 7}, "7,9"), (set(), "")],
)
def test_a_list_has_one_spelling(numbers, text):
    assert cpus.spelled(numbers) == text


def test_a_command_is_pinned_only_where_a_list_is_given():
    assert cpus.pinned("0-1") == ("taskset", "-c", "0-1")
    assert cpus.pinned("") == ()


# Two sockets of two cores with two threads each; Linux numbers the second threads last.
TWO_SOCKETS = [
    Thread(0, 0, 0, 0), Thread(1, 0, 1, 1), Thread(2, 1, 0, 0), Thread(3, 1, 1, 1),
    Thread(4, 0, 0, 0), Thread(5, 0, 1, 1), Thread(6, 1, 0, 0), Thread(7, 1, 1, 1),
]  # fmt: skip
ALL = frozenset(range(8))


def test_a_socket_is_filled_before_the_next_and_second_threads_come_last():
    assert choose(8, ALL, TWO_SOCKETS).cpus == (0, 2, 1, 3, 4, 6, 5, 7)


def test_each_level_holds_the_smaller_ones():
    chosen = [set(choose(number, ALL, TWO_SOCKETS).cpus) for number in range(1, 9)]
    assert all(small < large for small, large in pairwise(chosen))


def test_second_threads_are_counted():
    assert [choose(number, ALL, TWO_SOCKETS).second_threads for number in (4, 5, 8)] == [0, 1, 4]


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
