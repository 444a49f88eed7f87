"""What the reader of a page may do: it offers nothing else."""

from typing import Any

from django import template
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model

from runs.models import Campaign, Change, Configuration, Project, Run, Schedule, Workload
from runs.selectors.access import permissions
from runs.selectors.access.rights import Right

register = template.Library()


@register.filter
def may(user: User | AnonymousUser, right: str) -> bool:
    """`{% if user|may:"servers" %}`: what belongs to no project, or something new."""
    return permissions.may(user, Right(right))


@register.simple_tag
def is_new() -> bool:
    """Whether nobody has logged in yet: only then the first account is named to everybody."""
    return not User.objects.filter(last_login__isnull=False).exists()


@register.simple_tag(takes_context=True)
def may_here(context: Any, right: str, of: Model) -> bool:
    """`{% may_here "queue" campaign as may_queue %}`: in the project of a campaign or run."""
    user = context.get("user") or AnonymousUser()
    if not user.is_authenticated:
        return False
    project = _project(of)
    return permissions.may(
        user, Right(right), permissions.default_for(user) if project is None else project
    )


def _project(of: Model) -> int | None:
    if isinstance(of, Project):
        return of.pk
    if isinstance(of, Run):
        return of.campaign.project_id
    if isinstance(of, Change):
        return of.cell.campaign.project_id
    if isinstance(of, Schedule):
        project: int | None = of.draft.get("project")
        return project
    if isinstance(of, Configuration | Workload):
        return of.project_id if of.project_id is not None else permissions.INSTANCE
    return of.project_id if isinstance(of, Campaign) else None
