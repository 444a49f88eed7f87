"""Slugs: unique names of rows in addresses, made from typed text and cut to fit."""

from collections.abc import Collection, Iterator
from itertools import chain, count, islice
from typing import TypeVar

from django.db import IntegrityError, models, transaction
from django.utils.text import slugify

T = TypeVar("T", bound=models.Model)


def store(row: T, *, called: str, otherwise: str, taken: Collection[str] = ()) -> T:
    """Store a new row under the first free slug of its name; call it in a transaction.

    `otherwise` is used if nothing of the name is left in a slug; `taken` are never free. If two
    store the same name at once, one waits for the other and takes the next slug.
    """
    slugs = type(row)._default_manager.values_list("slug", flat=True)
    for slug in _numbered(slugify(called) or otherwise, _longest(type(row))):
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


def free(model: type[models.Model], wanted: str, *, taken: Collection[str] = ()) -> str:
    """The slug, or the first of it with numbers from 2 on, that no row has yet."""
    slugs = model._default_manager.values_list("slug", flat=True)
    numbered = chain([wanted], islice(_numbered(wanted, _longest(model)), 1, None))
    return next(
        each for each in numbered if each not in taken and not slugs.filter(slug=each).exists()
    )


def _numbered(wanted: str, longest: int) -> Iterator[str]:
    """The name, then the name with numbers from 2 on, cut to leave room for the number."""
    yield wanted[:longest].rstrip("-")
    for number in count(2):
        end = f"-{number}"
        yield wanted[: longest - len(end)].rstrip("-") + end


def _longest(model: type[models.Model]) -> int:
    return model._meta.get_field("slug").max_length  # type: ignore[union-attr,return-value]
