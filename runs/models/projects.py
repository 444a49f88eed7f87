"""Projects: campaigns and people that belong together."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Project(models.Model):
    """Groups campaigns and people. Data of a public project is readable without a login."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(_("name"), max_length=200)
    is_public = models.BooleanField(_("public"), default=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="projects", blank=True
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a project; `runs.selectors.access.permissions` says what it allows."""

    class Role(models.TextChoices):
        VIEWER = "viewer", _("viewer")
        OPERATOR = "operator", _("operator")
        MAINTAINER = "maintainer", _("maintainer")

    project = models.ForeignKey("Project", models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships", db_index=False
    )
    role = models.CharField(_("role"), max_length=12, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project", "user"]
        constraints = [
            models.UniqueConstraint(fields=["user", "project"], name="member_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role}"
