"""Lists of processors, as taskset and the kernel write them."""

import pytest

from runs.execution import cpus


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
