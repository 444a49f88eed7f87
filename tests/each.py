"""One test over many samples: it checks all of them, and names each that fails.

A test of its own for each sample would cost a hundred times what it checks.
"""

import functools
import math
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")


def examples(count: int) -> int:
    """How many examples are tried: `count` by script/test --all, otherwise a fifth."""
    return count if "BENCHLAB_TEST_ALL" in os.environ else math.ceil(count / 5)


def some(samples: Iterable[T], each: int = 4) -> list[T]:
    """All samples by script/test --all, otherwise the first one of so many that follow."""
    return list(samples)[:: 1 if "BENCHLAB_TEST_ALL" in os.environ else each]


def check_each(samples: Iterable[T], check: Callable[[T], None]) -> None:
    """Run `check` on each sample; fail with the list of all samples that do not hold."""
    number, failures = 0, []
    for sample in samples:
        number += 1
        try:
            check(sample)
        except Exception as error:  # noqa: BLE001  whatever a sample does, the others are checked
            failures.append(f"{sample}: {type(error).__name__}: {error}")
    if not number:
        pytest.fail("There is no sample.")
    if failures:
        pytest.fail(
            f"{len(failures)} of {number} fail:\n" + "\n".join(failures), pytrace=False
        )


def over(samples: Iterable[T]) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Make a check of one sample a test of all: `@over(SAMPLES) def test_...(sample)`."""
    every = tuple(samples)

    def decorate(check: Callable[[T], None]) -> Callable[[], None]:
        @functools.wraps(check)
        def test() -> None:
            check_each(every, check)

        del test.__wrapped__  # pytest would read the argument as the name of a fixture
        return test

    return decorate
