"""Projects: which of their data a reader may see."""

from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model, Q, QuerySet

from runs.models import (
    Ablation,
    Artifact,
    Bisection,
    Campaign,
    Cell,
    CellSummary,
    Change,
    Configuration,
    Edition,
    Measurement,
    Metric,
    Observation,
    Project,
    Run,
    Series,
    Token,
    Workload,
    WorkloadVersion,
)

M = TypeVar("M", bound=Model)
Reader = Token | User | AnonymousUser
NOBODY = AnonymousUser()
# The slug of the public project for everything that names none.
DEFAULT = "default"

# The path from each model to its campaign's project. Other models belong to no project.
PATHS: dict[type[Model], str] = {
    Ablation: "campaign__project",
    Bisection: "project",
    Campaign: "project",
    Cell: "campaign__project",
    CellSummary: "cell__campaign__project",
    Change: "cell__campaign__project",
    Run: "campaign__project",
    Measurement: "run__campaign__project",
    Series: "run__campaign__project",
    Artifact: "run__campaign__project",
    Configuration: "project",
    Metric: "project",
    Observation: "project",
    Edition: "observation__project",
    Workload: "project",
    WorkloadVersion: "workload__project",
}
# Those that know by themselves whether everybody may see them, or whose run does.
OPEN: dict[type[Model], str] = {
    Change: "is_public",
    Run: "is_public",
    Measurement: "run__is_public",
    Series: "run__is_public",
    Artifact: "run__is_public",
}
# Without a project they are of the instance: only an administrator changes them.
OF_INSTANCE: frozenset[type[Model]] = frozenset({Configuration, Metric, Workload})


def visible(rows: QuerySet[M], *, to: Reader) -> QuerySet[M]:
    """Those rows that belong to no private project, or to one of the reader's projects.

    Adds a condition to the query and no query of its own. Rows of models without a project are
    returned as they are.
    """
    path = PATHS.get(rows.model)
    if path is None or (isinstance(to, User) and to.is_superuser):
        return rows
    seen = rows.exclude(**{f"{path}__in": hidden(to)})
    if rows.model not in OPEN:
        return seen
    # The condition above decides; by this one an index leaves out what a list would skip.
    is_open = Q(**{OPEN[rows.model]: True})
    if isinstance(to, Token):
        return seen.filter(is_open | Q(**{path: to.project_id}))
    if not to.is_authenticated:
        return seen.filter(is_open)
    own = Project.objects.filter(members=to).order_by()
    return seen.filter(is_open | Q(**{f"{path}__in": own}))


def hidden(reader: Reader) -> QuerySet[Project]:
    """The private projects that the reader is not a member of."""
    private = Project.objects.filter(is_public=False).order_by()
    if isinstance(reader, Token):
        return private.exclude(pk=reader.project_id)
    return private.exclude(members=reader) if reader.is_authenticated else private


def usable(rows: QuerySet[M], *, in_project: int | None) -> QuerySet[M]:
    """Those rows that a campaign of a project may use: of the instance, public, or its own."""
    private = Project.objects.filter(is_public=False).exclude(pk=in_project or 0).order_by()
    return rows.exclude(**{f"{PATHS[rows.model]}__in": private})


def hidden_campaigns(reader: Reader) -> QuerySet[Campaign]:
    """The campaigns of `hidden`, for queries that begin at runs.

    PostgreSQL then reads these campaigns by their projects, instead of all that the reader may see.
    """
    if isinstance(reader, User) and reader.is_superuser:
        return Campaign.objects.none()
    return Campaign.objects.filter(project__in=hidden(reader)).order_by()


def is_own(row: Model, token: Token) -> bool:
    """Whether a token may change this row: one of its project, or of a model without a project.

    What names no project belongs to the default one.
    """
    path = PATHS.get(type(row))
    if path is None:
        return True
    project: Any = row
    for name in path.split("__"):
        project = getattr(project, name)
    if project is None:
        return type(row) not in OF_INSTANCE and bool(token.project.slug == DEFAULT)
    return bool(project.pk == token.project_id)


def readable(reader: Reader) -> QuerySet[Project]:
    """The projects whose data a reader may see."""
    if isinstance(reader, User) and reader.is_superuser:
        return Project.objects.all()
    return Project.objects.exclude(pk__in=hidden(reader))


def joined(user: User) -> QuerySet[Project]:
    """The projects that a person may make tokens for: the public ones, and their own."""
    return Project.objects.order_by("name", "pk").exclude(
        pk__in=Project.objects.none() if user.is_superuser else hidden(user)
    )
