"""Slugs: names of rows in addresses, made of what a person typed, cut to fit, each once."""

from collections.abc import Collection, Iterator
from itertools import count
from typing import TypeVar

from django.db import IntegrityError, models, transaction
from django.utils.text import slugify

T = TypeVar("T", bound=models.Model)


def store(row: T, *, called: str, otherwise: str, taken: Collection[str] = ()) -> T:
    """Store a new row under the first free slug of its name; call it in a transaction.

    `otherwise` is for names of which nothing is left in a slug, `taken` what is never free. Of two
    that store the same name at once, one waits for the other and takes the next slug.
    """
    slugs = type(row)._default_manager.values_list("slug", flat=True)
    for slug in _numbered(slugify(called) or otherwise, _longest(row)):
        if slug in taken or slugs.filter(slug=slug).exists():
            continue
        row.slug = slug  # type: ignore[attr-defined]
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError:
            if not slugs.filter(slug=slug).exists():
                raise
        else:
            return row
    raise AssertionError("numbers do not end")


def _numbered(wanted: str, longest: int) -> Iterator[str]:
    """The name, then the name with numbers from 2 on, cut so that the number has room."""
    yield wanted[:longest].rstrip("-")
    for number in count(2):
        end = f"-{number}"
        yield wanted[: longest - len(end)].rstrip("-") + end


def _longest(row: models.Model) -> int:
    return row._meta.get_field("slug").max_length  # type: ignore[union-attr,return-value]
