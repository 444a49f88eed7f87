"""Not proven is not equal: the same needs an interval within the minimum effect."""

import functools

import pytest

from runs.analysis.contrasts import Contrast
from tests import texts

# Texts for users that say that two things are equal, and why each is true where it is said.
REVIEWED = {
    "The anchor %(anchor)s is as fast as in %(edition)s, within %(effect)s: %(size)s.": "is_same",
    "%(count)d of %(number)d steps between versions are as large as published, within "
    "%(effect)s.": "is_same",
    "Of %(count)d of %(number)d steps between versions it is undecided whether they are as large "
    "as published; measured here by published: %(steps)s.": "undecided",
    "Of a table on disk io_uring scans 1.60 times as fast as sync, worker with 32 io_workers 1.26 "
    "times; point queries and most writes lose": "printed ratios",
    "The history of its campaign draws every commit since: a later step back is marked there and "
    "stands in Changes as faster. Until then what follows is as slow as the commit that is "
    "named.": "no later step",
    "A point leads to the campaign that measured it; a hollow one may be as fast as the base. "
    "Compare only points on one line: lines that are not connected have bases of "
    "their own.": "may be",
    "%(head)s and %(base)s are the same, %(size)s.": "the verdict same",
    "%(head)s and %(base)s are the same, %(size)s": "the verdict same",
    "%(head)s and %(base)s are the same in both conditions, %(size)s.": "the verdict same",
    "%(head)s and %(base)s are the same in all %(number)d conditions, %(size)s.": (
        "the verdict same"
    ),
    "%(head)s and %(base)s are the same in %(count)d of %(number)d conditions, %(size)s.": (
        "the verdict same"
    ),
    "Transactions a second to aim at, all clients together; 0: as fast as it goes.": "no figures",
    "%(machine)s: the machine was slow. Right before and after the load its disk wrote "
    "%(share)s %% as fast as it usually does.": "a share, below the limit",
    "as fast as it goes": "no figures",
    "Base and head are the same commit: name another base.": "no figures",
    "%(name)s and %(other)s are the same setting.": "no figures",
    "also settings that are the same": "no figures",
}
WORDS = (
    "as fast as",
    "as large as",
    "as slow as",
    "not slower",
    "no slower",
    "not faster",
    "are the same",
    "not apart",
)


@pytest.mark.parametrize(
    ("low", "high", "is_same", "is_apart"),
    [
        (0.99, 1.02, True, False),
        # The widest interval that a reviewer saw was called "as fast as".
        (0.00133, 668, False, False),
        (0.98, 1.04, False, False),
        (1.01, 1.02, True, True),
        (1.04, 1.1, False, True),
        (None, None, False, False),
    ],
)
def test_the_same_needs_an_interval_within_the_minimum_effect(
    low, high, is_same, is_apart
):
    contrast = Contrast(1.0, low, high)
    assert (contrast.is_same, contrast.is_apart) == (is_same, is_apart)


@functools.cache
def equal_texts():
    all_texts = {text for _place, (_context, text) in texts.in_code_and_templates()}
    return {text for text in all_texts if any(word in text for word in WORDS)}


def test_each_text_that_says_equal_was_looked_at():
    """A new one is read by a person, who writes here under which condition it is true."""
    assert equal_texts() - REVIEWED.keys() == set()
    assert REVIEWED.keys() <= equal_texts()
