"""Projects: making them, and the default public one."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import Membership, Project
from runs.selectors.access import projects
from runs.services.access import audit
from runs.services.errors import ServiceError

DEFAULT = projects.DEFAULT


def default() -> Project:
    """The public project for everything that names none; made when first needed."""
    project, _created = Project.objects.get_or_create(slug=DEFAULT, defaults={"name": "Default"})
    return project


@transaction.atomic
def create(*, slug: str, name: str = "", is_public: bool, members: Sequence[User] = ()) -> Project:
    """Make a project; its members are operators. Raises ServiceError `project_exists`."""
    project, created = Project.objects.get_or_create(
        slug=slug, defaults={"name": name or slug, "is_public": is_public}
    )
    if not created:
        message = _("There is a project %(slug)s already.") % {"slug": slug}
        raise ServiceError("project_exists", message, remedy=_("Choose another."), field="slug")
    project.members.set(members, through_defaults={"role": Membership.Role.OPERATOR})
    told = {"public": is_public, "operators": [user.username for user in members]}
    audit.record("project_made", f"project {slug}", project=project, after=told)
    return project
