"""Projects: campaigns and people that belong together."""

from datetime import UTC

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class Project(models.Model):
    """Groups campaigns and people. Data of a public project is readable without a login."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(_("name"), max_length=200)
    is_public = models.BooleanField(_("public"), default=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        through="Membership",
        related_name="projects",
        blank=True,
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class MembershipRole(models.TextChoices):
    """A person's role in a project; see `Membership.Role`."""

    VIEWER = "viewer", _("viewer")
    OPERATOR = "operator", _("operator")
    MAINTAINER = "maintainer", _("maintainer")


class Membership(models.Model):
    """A person's role in a project; `permission_table` of access says what it allows."""

    Role = MembershipRole

    project = models.ForeignKey("Project", models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="memberships",
        db_index=False,
    )
    role = models.CharField(_("role"), max_length=12, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project", "user"]
        constraints = [
            is_one_of("role", MembershipRole, name="membership_role_is_known"),
            models.UniqueConstraint(fields=["user", "project"], name="member_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role}"


class Invitation(models.Model):
    """Only a hash of the link is stored, so nobody who reads the database can use it."""

    project = models.ForeignKey("Project", models.CASCADE, related_name="invitations")
    role = models.CharField(_("role"), max_length=12, choices=Membership.Role)
    secret_hash = models.CharField(max_length=64, unique=True)
    note = models.CharField(_("for whom"), max_length=200, blank=True)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="invitations"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            is_one_of("role", MembershipRole, name="invitation_role_is_known")
        ]

    def __str__(self) -> str:
        return f"{self.project_id}: {self.role}"

    @property
    def is_open(self) -> bool:
        """Somebody can still use it."""
        return self.ended_at is None and self.expires_at > timezone.now()


class Token(models.Model):
    """`blab_<prefix>_<secret>`: only a hash of the secret is stored.

    `scopes` is a list of `read`, `upload`, `queue`, `server`, `monitor`, `admin`.
    """

    class Scope(models.TextChoices):
        READ = "read", _("read")
        UPLOAD = "upload", _("upload results")
        QUEUE = "queue", _("queue runs")
        SERVER = "server", _("upload for registered servers")
        MONITOR = "monitor", _("monitor BenchLab itself")
        ADMIN = "admin", _("administer")

    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    secret_hash = models.CharField(max_length=64)
    scopes = models.JSONField(_("scopes"), default=list)
    project = models.ForeignKey("Project", models.CASCADE, related_name="tokens")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(_("last used"), null=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

    @property
    def state(self) -> str:
        """`good`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= timezone.now():
            return "expired"
        return "good"


class AuditEntry(models.Model):
    """One action of a person, a token or a command. The database refuses to change or delete one.

    `actor` is the name at that moment, `by_way_of` the door (page, api, command) with the token's
    name; both are empty for automatic actions of BenchLab. `project` is null if there is none.
    `subject` names the object: `server db1`, `run 12`. It never contains a secret.
    """

    at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=150, blank=True)
    by_way_of = models.CharField(max_length=200, blank=True)
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=300)
    # Without a constraint: an entry outlives its subject.
    project = models.ForeignKey(
        "Project", models.DO_NOTHING, null=True, db_constraint=False, db_index=False
    )
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    # That BenchLab wrote it (`runs.access.selectors.macs`); empty in entries of older releases.
    mark = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["project", "-id"], name="audit_by_project"),
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
            models.Index(fields=["action", "-id"], name="audit_by_action"),
            models.Index(fields=["subject", "-id"], name="audit_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.subject}"

    @property
    def marked(self) -> tuple[object, ...]:
        """What the mark is over."""
        values = (
            self.at.astimezone(UTC).isoformat(),
            self.actor,
            self.by_way_of,
            self.action,
        )
        return (*values, self.subject, self.project_id, self.before, self.after)
