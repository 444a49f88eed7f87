"""Slugs: unique names of rows in addresses, made from typed text and cut to fit.

A slug exists once in the instance, and nobody may learn the names of private projects by trying
which slugs are free. So what belongs to a private project has the project in its slug:
`nightly--backend`. Typed text never makes two hyphens in a row.
"""

import hashlib
from collections.abc import Collection, Iterator
from itertools import chain, count, islice
from typing import TypeVar

from django.db import IntegrityError, models, transaction
from django.utils.text import slugify

from runs.models import Project

T = TypeVar("T", bound=models.Model)
# Between a name and its private project.
OF = "--"
_DIGEST = 8


def qualify_slug(name: str, project: Project | None, *, of: type[models.Model]) -> str:
    """The slug that a row of a model has by this name: with its project where that is private.

    One that does not fit is cut, and gets a digest of the whole name.
    """
    if project is None or project.is_public:
        return name
    end = f"{OF}{project.slug}"
    if name.endswith(end):
        return name
    longest = _longest(of)
    if len(name) + len(end) > longest:
        end = f"-{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}{end}"
        if len(end) >= longest:  # a long name of the project: both are in the digest
            digest = hashlib.sha256(f"{project.slug} {name}".encode()).hexdigest()[
                :_DIGEST
            ]
            end = f"{OF}{digest}"
    return name[: longest - len(end)].rstrip("-") + end


def store(
    row: T,
    *,
    called: str,
    otherwise: str,
    project: Project | None = None,
    taken: Collection[str] = (),
) -> T:
    """Store a new row under the first free slug of its name; call it in a transaction.

    `otherwise` is used if nothing of the name is left in a slug; `taken` are never free. If two
    store the same name at once, one waits for the other and takes the next slug. `project` is what
    the row belongs to, if to one.
    """
    slugs = type(row)._default_manager.values_list("slug", flat=True)
    for name in _numbered(slugify(called) or otherwise, _longest(type(row))):
        slug = qualify_slug(name, project, of=type(row))
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


def free(
    model: type[models.Model],
    wanted_slug: str,
    *,
    project: Project | None = None,
    forbidden_slugs: Collection[str] = (),
) -> str:
    """The slug in this project, or the first of it with numbers from 2 on, that no row has yet."""
    slugs = model._default_manager.values_list("slug", flat=True)
    for name in chain(
        [wanted_slug], islice(_numbered(wanted_slug, _longest(model)), 1, None)
    ):
        slug = qualify_slug(name, project, of=model)
        if slug not in forbidden_slugs and not slugs.filter(slug=slug).exists():
            return slug
    raise AssertionError("numbers do not end")


def _numbered(name_wanted: str, longest: int) -> Iterator[str]:
    """The name, then the name with numbers from 2 on, cut to leave room for the number."""
    yield name_wanted[:longest].rstrip("-")
    for number in count(2):
        end = f"-{number}"
        yield name_wanted[: longest - len(end)].rstrip("-") + end


def _longest(model: type[models.Model]) -> int:
    return model._meta.get_field("slug").max_length  # type: ignore[union-attr,return-value]
