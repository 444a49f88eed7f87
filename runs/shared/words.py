"""Words that somebody searches for: what a list has to say to be found by them."""

from typing import Any

from django.db.models import Q, QuerySet

MOST_WORDS = 8
# Characters that are searched for, in every list.
LONGEST = 200


def filter_configurations(found: QuerySet[Any], words: str) -> QuerySet[Any]:
    """Those of these configurations that have all of the words; one may be a setting's name."""
    return saying(found, words, "name", "slug", "description", are_settings=True)


def filter_hardware(found: QuerySet[Any], words: str) -> QuerySet[Any]:
    """Those of these hardware profiles that have all of the words."""
    return saying(found, words, "name", "cpu_model", "virtualization", "facts__cloud")


def saying(
    found: QuerySet[Any], words: str, *names: str, are_settings: bool = False
) -> QuerySet[Any]:
    """Those that have every word in one of these fields, or as the name of a setting."""
    for word in words.split()[:MOST_WORDS]:
        condition = Q(settings__has_key=word.lower()) if are_settings else Q()
        for name in names:
            condition |= Q(**{f"{name}__icontains": word})
        found = found.filter(condition)
    return found
