"""Changes found in histories: steps and alarms, and what people decided about them."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of, seen_by_readers
from runs.models.measurements import Metric


class GateAnswer(models.Model):
    """What a CI job was told about a commit, and what that rested on.

    `base` is the base as it was named, `base_revision` its commit where it is one. `asked` has
    metrics, levels, effect and ignored conditions, and `fingerprint` is the question's, its base
    among it. `table` is that of `runs.compare.selectors.judge.gate.as_json`; `runs` are the keys of
    the finished runs of both sides ("811-813,820"), and `rules` is the version of the rules.
    """

    campaign = models.ForeignKey(
        "Campaign", models.CASCADE, related_name="gate_answers"
    )
    head = models.ForeignKey(
        "Revision", models.CASCADE, related_name="+", db_index=False
    )
    base = models.CharField(max_length=300)
    base_revision = models.ForeignKey(
        "Revision", models.SET_NULL, null=True, related_name="+"
    )
    asked = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    overall = models.CharField(max_length=20)
    table = models.JSONField()
    runs = models.TextField()
    rules = models.PositiveSmallIntegerField()
    given_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["head", "-id"], name="gate_answer_by_head")]

    def __str__(self) -> str:
        return f"{self.overall}: {self.base}"


class ChangeDecision(models.TextChoices):
    """A person's decision about a change; see `Change.Decision`."""

    OPEN = "open", _("open")
    CONFIRMED = "confirmed", _("confirmed")
    DISMISSED = "dismissed", _("dismissed")
    REFUTED = "refuted", _("refuted")


class ChangeReason(models.TextChoices):
    """Why a change was refuted; see `Change.Reason`."""

    LATER_RUNS = "later_runs", _("later runs no longer show it")
    WITHDRAWN = "withdrawn", _("its run was withdrawn")
    LEFT = "left_behind", _("its branch has left the commit behind")
    NEWER_RULES = "newer_rules", _("newer rules do not find it")


class ChangeKind(models.TextChoices):
    """How a change was found; see `Change.Kind`."""

    STEP = "step", _("step")
    MACHINE = "machine", _("machine")
    ALARM = "alarm", _("alarm")


class Change(models.Model):
    """A point of a history from which on the metric is different. Each is reported once.

    `run` is the first one of the first point after the change and `cell` that run's; `ratio` is
    that of the medians after and before. A step is of the kind `machine` where the machine changed,
    or most series of a suite moved with it; `facts` are what is known to have changed there: kind,
    name, before and after. A decision without `decided_at` was made automatically.
    """

    Kind = ChangeKind
    Decision = ChangeDecision
    Reason = ChangeReason

    # Changes of a level; an alarm is of a point.
    STEPS = (ChangeKind.STEP, ChangeKind.MACHINE)
    # What a person, or later runs, took back.
    GONE = (ChangeDecision.DISMISSED, ChangeDecision.REFUTED)

    # The cell's, for lists of a campaign; kept by a trigger (migration 0054).
    campaign = models.ForeignKey(
        "Campaign", models.CASCADE, related_name="+", editable=False, db_index=False
    )
    # Whether everybody may see it; kept by triggers (migration 0065).
    is_public = models.BooleanField(default=True, db_default=True, editable=False)
    # Else the project whose members may; kept by triggers (migration 0075).
    private_project = models.BigIntegerField(null=True, editable=False)
    cell = models.ForeignKey("Cell", models.CASCADE, related_name="changes")
    run = models.ForeignKey("Run", models.CASCADE, related_name="+")
    metric = models.ForeignKey("Metric", models.PROTECT)
    kind = models.CharField(max_length=10, choices=Kind)
    ratio = models.FloatField()
    before = models.FloatField()
    after = models.FloatField()
    p_value = models.FloatField(null=True)
    # The version of the rules that found it, or judged it last: runs.analysis.monitoring.RULES.
    rules = models.PositiveSmallIntegerField(default=1, db_default=1)
    # The points between which the true place lies in 95 of 100 cases: commits, else days.
    earliest = models.CharField(max_length=64, blank=True, default="", db_default="")
    latest = models.CharField(max_length=64, blank=True, default="", db_default="")
    facts = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField())
    )
    found_at = models.DateTimeField(auto_now_add=True)
    decision = models.CharField(max_length=10, choices=Decision, default=Decision.OPEN)
    note = models.TextField(blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    decided_at = models.DateTimeField(null=True)
    # When and why it was refuted; a step that is shown again has the time of that, and no reason.
    settled_at = models.DateTimeField(null=True)
    reason = models.CharField(
        max_length=20, choices=Reason, blank=True, default="", db_default=""
    )
    # Null while a mail about it waits to be sent.
    mailed_at = models.DateTimeField(null=True)
    # When a worker began to mail it; null when nobody does.
    mailing_since = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-found_at", "-pk"]
        constraints = [
            is_one_of("kind", ChangeKind, name="change_kind_is_known"),
            is_one_of("decision", ChangeDecision, name="change_decision_is_known"),
            is_one_of(
                "reason", ChangeReason, name="change_reason_is_known", or_empty=True
            ),
            models.UniqueConstraint(
                fields=["run", "metric", "kind"], name="change_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"], condition=models.Q(mailed_at=None), name="change_to_mail"
            ),
            # For judging again what older rules judged: control asks for it at each turn.
            models.Index(fields=["rules", "id"], name="change_by_rules"),
            models.Index(fields=["campaign", "-id"], name="change_by_campaign"),
            *seen_by_readers("-id", public="change_public", private="change_private"),
            # The filters of lists, the newest first; most have the other value.
            models.Index(
                fields=["decision", "-id"],
                condition=~models.Q(decision="open"),
                name="change_by_decision",
            ),
            models.Index(
                fields=["-id"],
                condition=models.Q(kind="alarm"),
                name="change_of_single_run",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.ratio:.3f}"

    @property
    def verdict(self) -> str:
        """`faster` or `slower`, or `different` if the metric has no better direction."""
        if self.metric.direction == Metric.Direction.NEUTRAL:
            return "different"
        is_better = (self.ratio > 1) == (
            self.metric.direction == Metric.Direction.HIGHER
        )
        return "faster" if is_better else "slower"


class StaleCell(models.Model):
    """A cell with new runs whose history was not analysed since. A queue, only added to.

    Several rows of one cell count as one, so an upload never waits for another here.
    """

    campaign = models.ForeignKey("Campaign", models.CASCADE, related_name="+")
    cell = models.ForeignKey("Cell", models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.cell_id}"


class WebhookKind(models.TextChoices):
    """What receives the reports of a webhook; see `Webhook.Kind`."""

    SIGNED = "signed", _("JSON, signed")
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"
    MATTERMOST = "mattermost", "Mattermost"
    DISCORD = "discord", "Discord"


class Webhook(models.Model):
    """An address that receives signed reports of a project's events. The secret is encrypted.

    `kind` decides the shape of what is sent: our own JSON, or a message of a chat.
    """

    Kind = WebhookKind

    project = models.ForeignKey("Project", models.CASCADE, related_name="webhooks")
    url = models.URLField(max_length=500)
    kind = models.CharField(
        max_length=12,
        choices=WebhookKind,
        default=WebhookKind.SIGNED,
        db_default=WebhookKind.SIGNED.value,
    )
    encrypted_secret = models.TextField()
    events = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project", "pk"]
        constraints = [is_one_of("kind", WebhookKind, name="webhook_kind_is_known")]

    def __str__(self) -> str:
        return self.url


class DeliveryState(models.TextChoices):
    """The state of a delivery; see `WebhookDelivery.State`."""

    WAITING = "waiting", _("waiting")
    DELIVERED = "delivered", _("delivered")
    GIVEN_UP = "given_up", _("given up")


class WebhookDelivery(models.Model):
    """One report to one webhook, with its tries. The payload is sent byte for byte as stored."""

    State = DeliveryState

    webhook = models.ForeignKey("Webhook", models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    payload = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(null=True)
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "webhook deliveries"
        constraints = [
            is_one_of("state", DeliveryState, name="delivery_state_is_known")
        ]
        indexes = [
            models.Index(
                fields=["next_try_at"],
                condition=models.Q(state="waiting"),
                name="delivery_waiting",
            ),
            # The newest of each webhook.
            models.Index(fields=["webhook", "-id"], name="delivery_by_webhook"),
        ]

    def __str__(self) -> str:
        return f"{self.event}: {self.state}"
