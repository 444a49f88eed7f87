"""Servers belong to the instance: who changes them is its administrator."""

import pytest


@pytest.fixture
def member(administrator):
    """A client that an administrator has logged in."""
    return administrator
