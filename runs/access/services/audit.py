"""The one place that writes the audit trail; every service that people act by calls it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Model
from django.utils import timezone

from runs.access.selectors import macs, permissions
from runs.control_characters import neutralised
from runs.models import AuditEntry, Project
from runs.postgresql_settings import secrets

# Of a text, in an entry.
MOST_CHARACTERS = 500
MOST_ITEMS = 50


@dataclass
class Actor:
    """Who acts, and by which door: `page`, `api`, `api, token nightly`, `command verify`."""

    name: str = ""
    by_way_of: str = ""


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Whatever is recorded within is this actor's."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


def become(name: str, by_way_of: str) -> None:
    """Name the actor of the present request, once the door knows who asks."""
    actor = _actor.get()
    if actor is not None:
        actor.name, actor.by_way_of = name, by_way_of


def present() -> Actor:
    """Who acts now; nobody for what is automatic."""
    return _actor.get() or Actor()


def record(
    action: str,
    subject: str | Model,
    *,
    project: int | Project | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Add an entry; call it in the transaction of the action. Automatic actions have none.

    A row is named by its kind and slug or key, and is of its own project unless another is given.

    Of `before` and `after` only what differs is kept, and no secret: what is named like one, or
    looks like one, is masked.
    """
    actor = _actor.get()
    if actor is None:
        return
    if isinstance(subject, Model):
        if project is None and hasattr(subject, "project_id"):
            project = find_project_id(subject.project_id)
        subject = f"{subject._meta.model_name} {getattr(subject, 'slug', subject.pk)}"
    was, now = dict(before or {}), dict(after or {})
    same = {name for name in was.keys() & now.keys() if was[name] == now[name]}
    audit_entry = AuditEntry(
        at=timezone.now(),
        actor=actor.name[:150],
        by_way_of=actor.by_way_of[:200],
        action=action,
        subject=neutralised(subject)[:300],
        project_id=project.pk if isinstance(project, Project) else project,
        before={name: _plain(name, was[name]) for name in was.keys() - same},
        after={name: _plain(name, now[name]) for name in now.keys() - same},
    )
    audit_entry.mark = macs.mark(macs.AUDIT, *audit_entry.marked)
    audit_entry.save()


def find_project_id(project: int | None) -> int | None:
    """The project to record: what names none is the default one's."""
    return project if project is not None else permissions.default_project()


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it, capped and without secrets."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # A number as jsonb gives it back, which writes out all digits and knows no negative zero.
        return int(value) if value.is_integer() and abs(value) >= 1e16 else value + 0.0
    if isinstance(value, Mapping):
        items = list(value.items())[:MOST_ITEMS]
        return {str(key)[:100]: _plain(str(key), member) for key, member in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(name, element) for element in list(value)[:MOST_ITEMS]]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    text = neutralised(str(value) if not isinstance(value, Model) else str(value.pk))
    return secrets.masked(name, text)[:MOST_CHARACTERS]
