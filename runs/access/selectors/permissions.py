"""Who may do what: pages, the API and tokens ask here; `permission_table` has the table.

A role is a person's role in the project that the address belongs to. Machines belong to no project,
and need the highest role that the person has in any; configurations and scripts that belong to no
project need an administrator, who has every right everywhere. A token can do what its scopes allow,
and never more than its owner may do in its project at that moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import GRANTS, Right, Role
from runs.access.selectors.projects import M
from runs.models import (
    Annotation,
    AuditEntry,
    Bisection,
    Campaign,
    Change,
    Configuration,
    Load,
    Observation,
    Project,
    Run,
    Schedule,
    Token,
    Webhook,
    Workload,
)

Actor = Token | User | AnonymousUser
READING = frozenset({"GET", "HEAD", "OPTIONS"})

# The object that an address names by its first word, and its project. Others have none.
SUBJECTS: Mapping[str, tuple[type[Model], str]] = {
    "annotation": (Annotation, "campaign__project"),
    "bisection": (Bisection, "project"),
    "campaign": (Campaign, "project"),
    "change": (Change, "cell__campaign__project"),
    "configuration": (Configuration, "project"),
    "load": (Load, "project"),
    "observation": (Observation, "project"),
    "project": (Project, "pk"),
    "run": (Run, "campaign__project"),
    "schedule": (Schedule, "project"),
    "webhook": (Webhook, "project"),
    "workload": (Workload, "project"),
}
# In place of the project of what is of the instance: nobody has a role there.
INSTANCE = 0
_ROLES = {role.name.lower(): role for role in Role}


@dataclass(frozen=True)
class Denied:
    """Why somebody may not. `scope` is what a token lacks; otherwise a role is missing."""

    right: Right
    scope: str = ""


def right_of(address: str, method: str) -> Right | None:
    """The right that an address needs; None without the method. PermissionDenied without a rule."""
    rules = addresses.loaded().get(address)
    if rules is None:
        raise PermissionDenied(f"{address}: nobody said who may use it")
    return rules.rights.get("GET" if method in READING else method)


def methods_of(address: str) -> list[str]:
    """The methods that a page has; none for an address that knows its own."""
    rules = addresses.loaded().get(address)
    if rules is None or not rules.limits_methods:
        return []
    methods = list(rules.rights)
    return [*methods, "HEAD"] if "GET" in methods else methods


def right_to_act(address: str) -> Right:
    """The right that a form or a link to an address needs: to post there, else to read it."""
    rights = addresses.loaded()[address].rights
    return rights.get("POST") or rights["GET"]


def may_act(actor: Actor, address: str, project: int | None = None) -> bool:
    """Whether somebody may do what an address is for, in a project or with none.

    Nobody may where the subject that has the address was taken out.
    """
    return address in addresses.loaded() and may(actor, right_to_act(address), project)


def is_offered(user: User | AnonymousUser, address: str) -> bool:
    """Whether a page leads somebody there: who may go, and who has to log in first."""
    if not user.is_authenticated:
        return address in addresses.loaded()
    return may_act(user, address)


class NotThereError(LookupError):
    """Nothing that the actor may know of has this address."""


def decide(
    actor: Actor, right: Right, address: str, objects_by_name: Mapping[str, Any]
) -> Denied | None:
    """Why somebody may not do this to what an address names; None if they may.

    The right comes first: who has not logged in is denied before anything is looked up. Raises
    NotThereError for what does not exist as for what is in a private project of others, so that the
    answer does not tell them apart. At most one query for the object, and three for the actor.
    """
    if isinstance(actor, Token) or right == Right.LOOK:
        return denied(actor, right)
    if not actor.is_authenticated and GRANTS[right].role > Role.ANYBODY:
        return Denied(right)
    # The kind of object that an address names, with the path to its project; None for others.
    kind = (
        addresses.loaded()[address].of or address.removeprefix("api:").partition("-")[0]
    )
    subject = SUBJECTS.get(kind) if objects_by_name else None
    if subject is None:
        return denied(actor, right)
    project = _project_of(*subject, objects_by_name)
    if is_hidden(actor, project):
        raise NotThereError
    return denied(actor, right, project)


def _project_of(
    model: type[Model], path: str, objects_by_name: Mapping[str, Any]
) -> int | None:
    """The project of an object; what names none is of the instance, or of the default project."""
    key, value = next(iter(objects_by_name.items()))
    field = "slug" if key == "slug" else "pk"
    try:
        rows = list(
            model._default_manager.filter(**{field: value}).values_list(path, flat=True)
        )
    except (ValueError, TypeError) as error:
        raise NotThereError from error
    if not rows:
        raise NotThereError
    project: int | None = rows[0]
    return project or (INSTANCE if model in projects.OF_INSTANCE else default_project())


def project_of(row: Model) -> int | None:
    """The key of a row's project; None for the default one. `SUBJECTS` says where it is."""
    *steps, last_step = SUBJECTS[str(row._meta.model_name)][1].split("__")
    for step in steps:
        row = getattr(row, step)
    project_key: int | None = getattr(
        row, last_step if last_step == "pk" else f"{last_step}_id"
    )
    return project_key or (INSTANCE if type(row) in projects.OF_INSTANCE else None)


def default_project() -> int | None:
    """The key of the public project for everything that names none."""
    return (
        Project.objects.filter(slug=projects.DEFAULT)
        .values_list("pk", flat=True)
        .first()
    )


def role_in(user: User | AnonymousUser, project: int | None) -> Role:
    """A person's role in a project; without a project, their highest role anywhere."""
    if not isinstance(user, User) or not user.is_active:
        return Role.ANYBODY
    if user.is_superuser:
        return Role.ADMINISTRATOR
    roles = _roles(user)
    possible_roles = (
        roles.values() if project is None else [roles.get(project, Role.PERSON)]
    )
    return max(possible_roles, default=Role.PERSON)


def denied(actor: Actor, right: Right, project: int | None = None) -> Denied | None:
    """Why somebody may not do this; None if they may.

    For a token, its scopes count, and what its owner may do in its project. Whether the token's
    project is that of the changed object is another question (`projects.is_own`).
    """
    grant = GRANTS[right]
    if isinstance(actor, Token):
        if not {grant.scope, Token.Scope.ADMIN} & set(actor.scopes):
            return Denied(right, grant.scope)
        owner = actor.created_by
        role = Role.ADMINISTRATOR if owner is None else role_in(owner, actor.project_id)
    else:
        role = role_in(actor, project)
    return None if role >= grant.role else Denied(right)


def may(actor: Actor, right: Right, project: int | None = None) -> bool:
    """Whether somebody may do this, in a project or with something that belongs to none."""
    return denied(actor, right, project) is None


def may_for(actor: Actor, right: Right, project: Project | None) -> bool:
    """Whether somebody may do this in a project; None is the default one."""
    return may(actor, right, project.pk if project is not None else default_project())


def require(actor: Actor, right: Right, project: Project | None) -> None:
    """Raise PermissionDenied if somebody may not do this in a project; None is the default."""
    if not may_for(actor, right, project):
        raise PermissionDenied(_("Your role in this project does not allow this."))


def is_hidden(user: User | AnonymousUser, project: int | None) -> bool:
    """Whether a project is private and the person, who is not a member, must not know of it."""
    if project is None or role_in(user, project) >= Role.VIEWER:
        return False
    return Project.objects.filter(pk=project, is_public=False).exists()


def may_in(actor: User, right: Right) -> list[int] | None:
    """The projects in which a person has a right; None for all."""
    if actor.is_superuser:
        return None
    return [key for key, role in _roles(actor).items() if role >= GRANTS[right].role]


def scopes_of(user: User, project: Project | None = None) -> list[str]:
    """The scopes that a person's token of a project may have: each with something to allow.

    Anybody may read; the others belong to the rights that the person has there, or, for a form
    without a project yet, in some project.
    """
    role = role_in(user, None if project is None else project.pk)
    least = {
        scope: min(grant.role for grant in GRANTS.values() if grant.scope == scope)
        for scope in Token.Scope.values
    }
    return [scope for scope in least if role >= max(least[scope], Role.PERSON)]


def choices(user: User, right: Right) -> QuerySet[Project]:
    """The projects that a person may choose for something new, by name."""
    project_keys = may_in(user, right)
    all_projects = Project.objects.order_by("name", "pk")
    return (
        all_projects
        if project_keys is None
        else all_projects.filter(pk__in=project_keys)
    )


def project_for(user: User, right: Right) -> Project | None:
    """The project for new objects of a person that name none: None is the default one.

    The default one if they have the right there, else the first of their projects in which they do.
    Raises PermissionDenied.
    """
    if may(user, right, default_project() or 0):
        return None
    project = choices(user, right).first()
    require(user, right, project)
    return project


def _roles(user: User) -> dict[int, Role]:
    membership_of = projects.memberships(user)
    return {
        project: _ROLES[role] for project, (role, _is_public) in membership_of.items()
    }


def default_for(user: User | AnonymousUser) -> int | None:
    """`default_project`, for all that a page asks of its reader. One query per request."""
    if not hasattr(user, "_benchlab_default"):
        setattr(user, "_benchlab_default", default_project())  # noqa: B010
    default_key: int | None = getattr(user, "_benchlab_default")  # noqa: B009
    return default_key


def readable_audit(*, to: Actor) -> QuerySet[AuditEntry]:
    """The entries of those projects in which the reader may read them, the newest first.

    What belongs to no project (servers, keys) is an administrator's. A token reads those of its
    own project.
    """
    entries = AuditEntry.objects.select_related("project").order_by("-pk")
    return filter_by_right(entries, Right.AUDIT, to=to)


def filter_by_right(rows: QuerySet[M], right: Right, *, to: Actor) -> QuerySet[M]:
    """Those rows of projects in which somebody has a right; of a token those of its own project."""
    if isinstance(to, Token):
        return rows.filter(project=to.project_id)
    if not isinstance(to, User) or not to.is_active:
        return rows.none()
    project_keys = may_in(to, right)
    return rows if project_keys is None else rows.filter(project__in=project_keys)


def audit_of_project(rows: QuerySet[AuditEntry], slug: str) -> QuerySet[AuditEntry]:
    """Those of a project, by its key: an index begins with it."""
    keys = Project.objects.filter(slug=slug).order_by().values_list("pk", flat=True)
    return rows.filter(project__in=list(keys))


def tokens_of(user: User) -> QuerySet[Token]:
    """A person's own tokens, the newest first; an administrator sees all."""
    tokens = Token.objects.select_related("project", "created_by").order_by(
        "-created_at", "-pk"
    )
    return tokens if user.is_superuser else tokens.filter(created_by=user)
