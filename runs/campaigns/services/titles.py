"""Titles of campaigns that nobody has typed: in each language, since they are stored."""

from typing import NamedTuple

from django.utils.translation import gettext, override

LONGEST = 200


class Titles(NamedTuple):
    """What a campaign has as `title` and `title_ja`."""

    english: str
    japanese: str


def make_titles(text: str, **values: object) -> Titles:
    """The titles of a text that is marked for translation."""
    titles = []
    for language in ("en", "ja"):
        with override(language):
            titles.append((gettext(text) % values)[:LONGEST])
    return Titles(*titles)
