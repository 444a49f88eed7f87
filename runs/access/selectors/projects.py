"""Projects: which of their data a reader may see."""

from collections.abc import Collection, Sequence
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
    Load,
    Measurement,
    Membership,
    Metric,
    Observation,
    Project,
    Run,
    Schedule,
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
    Load: "project",
    Schedule: "project",
    Workload: "project",
    WorkloadVersion: "workload__project",
}
# Those that know by themselves whether everybody may see them, or whose run does.
OPEN: dict[type[Model], str] = {
    Campaign: "is_public",
    Change: "is_public",
    Run: "is_public",
    Measurement: "run__is_public",
    Series: "run__is_public",
    Artifact: "run__is_public",
}
# Where those say whose private project they belong to.
PRIVATE: dict[type[Model], str] = {
    Campaign: "project",
    Change: "private_project",
    Run: "private_project",
    Measurement: "run__private_project",
}
# A member of more private projects has lists that read what is hidden, too.
MOST_OWN = 20
# Without a project they are of the instance: only an administrator changes them.
OF_INSTANCE: frozenset[type[Model]] = frozenset({Configuration, Metric, Workload})


def visible(rows: QuerySet[M], *, to: Reader) -> QuerySet[M]:
    """Those rows that belong to no private project, or to one of the reader's projects.

    Adds a condition to the query; for members a query of its own, once. Rows of models without a
    project are returned as they are.
    """
    if _sees_all(rows, to):
        return rows
    path, readable = PATHS[rows.model], _exclude(rows, hidden(to))
    if rows.model not in OPEN:
        return readable
    # The condition above decides; by this one an index leaves out what a list would skip.
    is_open = Q(**{OPEN[rows.model]: True})
    own_keys = [to.project_id] if isinstance(to, Token) else _own_private(to)
    return readable.filter(
        is_open | Q(**{f"{path}__in": own_keys}) if own_keys else is_open
    )


def newest(rows: QuerySet[M], *, to: Reader, number: int) -> QuerySet[M]:
    """The first `number` of those of `visible` in the order of the rows, which an index has.

    None that is hidden is read: what everybody may see comes first in an index of its own, and so
    do the rows of each private project of the reader's. One query, which merges these as far as it
    needs; for members another one, once. What orders the rows is among what is loaded of them.
    """
    first_rows, *further_rows = [part[:number] for part in parts(rows, to=to)]
    if not further_rows:
        return first_rows
    merged = first_rows.union(*further_rows, all=True)
    return merged.order_by(*map(str, rows.query.order_by))[:number]


def newest_keys(rows: QuerySet[M], *, to: Reader, number: int) -> list[int]:
    """The keys of `newest`, in one query; for members in another one, once."""
    return [key for key, *_values in _found(rows, parts(rows, to=to), number)[1]]


def newest_of_each(
    rows_of: Sequence[QuerySet[M]], *fields: str, to: Reader, number: int
) -> list[Any]:
    """The values of the first `number` of each of these, in one query; for members in another one.

    In no order, and of who sees rows of several projects up to `number` for each project.
    """
    parts_of_all = [part for rows in rows_of for part in parts(rows, to=to)]
    return list(_together(parts_of_all, fields, number)) if parts_of_all else []


def parts(rows: QuerySet[M], *, to: Reader) -> list[QuerySet[M]]:
    """Those that an index has in the order of the rows; together they are `visible`.

    What everybody may see, and the rows of each private project of the reader's.
    """
    if rows.model not in PRIVATE or _sees_all(rows, to):
        return [visible(rows, to=to)]
    own_keys = _own_private(to)
    if len(own_keys) > MOST_OWN:
        return [visible(rows, to=to)]
    open_, private = OPEN[rows.model], PRIVATE[rows.model]
    readable = _exclude(rows, _private_but(own_keys))
    public = readable.filter(**{open_: True})
    return [
        public,
        *(readable.filter(**{private: key, open_: False}) for key in own_keys),
    ]


def _found(
    rows: QuerySet[M], querysets: Sequence[QuerySet[M]], number: int
) -> tuple[list[str], list[Any]]:
    """The first of all parts: the names of keys and of what orders them, and their values."""
    order = [str(name) for name in rows.query.order_by]
    fields = [
        "pk",
        *(
            name
            for order_field in order
            if (name := order_field.removeprefix("-")) != "pk"
        ),
    ]
    rows_found = _together(querysets, fields, number)
    if len(querysets) > 1:
        rows_found = rows_found.order_by(*order)[:number]
    return fields, list(rows_found)


def _together(
    querysets: Sequence[QuerySet[M]], fields: Sequence[str], number: int
) -> QuerySet[M, Any]:
    """The values of the first `number` of each, at least one, in one query."""
    first_rows, *further_rows = (
        queryset.values_list(*fields)[:number] for queryset in querysets
    )
    return first_rows.union(*further_rows, all=True) if further_rows else first_rows


def _sees_all(rows: QuerySet[M], to: Reader) -> bool:
    return rows.model not in PATHS or (isinstance(to, User) and to.is_superuser)


def _exclude(rows: QuerySet[M], excluded: QuerySet[Project]) -> QuerySet[M]:
    return rows.exclude(**{f"{PATHS[rows.model]}__in": excluded})


def _private_but(own_keys: Collection[int]) -> QuerySet[Project]:
    return Project.objects.filter(is_public=False).exclude(pk__in=own_keys).order_by()


def memberships(user: User) -> dict[int, tuple[str, bool]]:
    """The role in each of a person's projects, and whether everybody may read that one.

    One query per request: the next request loads the person again.
    """
    if not hasattr(user, "_benchlab_memberships"):
        rows = Membership.objects.filter(user=user).order_by()
        membership_rows = rows.values_list("project_id", "role", "project__is_public")
        membership_of = {
            project: (role, is_public) for project, role, is_public in membership_rows
        }
        setattr(user, "_benchlab_memberships", membership_of)  # noqa: B010 -- not a field of the model
    kept: dict[int, tuple[str, bool]] = getattr(user, "_benchlab_memberships")  # noqa: B009
    return kept


def filter_by_membership(rows: QuerySet[M], *, to: Reader) -> QuerySet[M]:
    """Rows that members of their `project` alone see, whether it is public or not."""
    if isinstance(to, Token):
        return rows.filter(project=to.project_id)
    if isinstance(to, AnonymousUser):
        return rows.none()
    if to.is_superuser:
        return rows
    return rows.filter(project__in=memberships(to))


def _own_private(to: Reader) -> list[int]:
    if isinstance(to, Token):
        return [] if to.project.is_public else [to.project_id]
    if not isinstance(to, User):
        return []
    return [
        project
        for project, (_role, is_public) in memberships(to).items()
        if not is_public
    ]


def hidden(reader: Reader) -> QuerySet[Project]:
    """The private projects that the reader is not a member of; none for administrators."""
    if isinstance(reader, User) and reader.is_superuser:
        return Project.objects.none()
    own_keys = (
        [reader.project_id] if isinstance(reader, Token) else _own_private(reader)
    )
    return _private_but(own_keys)


def usable(rows: QuerySet[M], *, in_project: int | None) -> QuerySet[M]:
    """Those rows that a campaign of a project may use: of the instance, public, or its own."""
    return _exclude(rows, _private_but(() if in_project is None else [in_project]))


def hidden_campaigns(reader: Reader) -> QuerySet[Campaign]:
    """The campaigns of `hidden`, by which queries that begin at runs read only their projects."""
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
    """The projects whose data a reader may see: the public ones, and their own."""
    return Project.objects.exclude(pk__in=hidden(reader))
