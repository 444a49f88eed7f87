"""Marks of rows stay what they are: stored ones would be nobody's otherwise."""

import hmac

import pytest

from runs.access.selectors import macs

# A mark that is none by keys of this host may be by that of a host that has joined.
pytestmark = pytest.mark.django_db


def test_a_mark_is_by_a_key_derived_as_the_standard_says_over_json_of_ascii(settings):
    settings.ENCRYPTION_KEY = "first, second"
    # RFC 5869, with one block of output.
    derived = hmac.digest(
        hmac.digest(bytes(32), b"first", "sha256"), b"benchlab marks 1\1", "sha256"
    )
    text = rb'["update", "caf\u00e9", {"a": 1, "b": 2}]'
    mark = hmac.digest(derived, text, "sha256").hex()

    assert macs.mark(macs.UPDATE, "caf\u00e9", {"b": 2, "a": 1}) == mark
    assert macs.is_marked(mark, macs.UPDATE, "caf\u00e9", {"a": 1, "b": 2})
    assert not macs.is_marked(mark, macs.AUDIT, "caf\u00e9", {"a": 1, "b": 2})
    with pytest.raises(ValueError, match="JSON"):
        macs.mark(macs.UPDATE, float("nan"))


def test_each_key_is_accepted_and_without_one_there_is_no_mark(settings):
    settings.ENCRYPTION_KEY = "old"
    mark = macs.mark(macs.AUDIT, 1)
    settings.ENCRYPTION_KEY = "new,old"
    assert macs.mark(macs.AUDIT, 1) != mark
    assert macs.is_marked(mark, macs.AUDIT, 1)
    settings.ENCRYPTION_KEY = "new"
    assert not macs.is_marked(mark, macs.AUDIT, 1)
    assert macs.is_marked(mark, macs.AUDIT, 1, also="old")
    settings.ENCRYPTION_KEY = ""
    assert macs.mark(macs.AUDIT, 1) == ""
    assert not macs.is_marked("", macs.AUDIT, 1)
