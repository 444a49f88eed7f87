"""What the reader of a page may do: a page asks by the address that it leads to."""

from typing import Any

from django import template
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model
from django.urls import reverse

from runs.access.selectors import permissions

register = template.Library()


@register.filter
def may(user: User | AnonymousUser, address: str) -> bool:
    """`{% if user|may:"server-edit" %}`: what belongs to no project, or something new."""
    return permissions.may_act(user, address)


@register.simple_tag(takes_context=True)
def offered(context: Any, address: str) -> str:
    """`{% offered "server-new" as new %}`: its path; empty for who may not go there."""
    user = context.get("user") or AnonymousUser()
    return reverse(address) if permissions.is_offered(user, address) else ""


@register.simple_tag
def is_new() -> bool:
    """Whether nobody has logged in yet: only then the first account is named to everybody."""
    return not User.objects.filter(last_login__isnull=False).exists()


@register.simple_tag(takes_context=True)
def may_here(context: Any, address: str, row: Model) -> bool:
    """`{% may_here "run-retry" run as may_queue %}`: with a row, which has the project."""
    user = context.get("user") or AnonymousUser()
    if not user.is_authenticated:
        return False
    project = permissions.project_of(row)
    if project is None:
        project = permissions.default_for(user)
    return permissions.may_act(user, address, project)
