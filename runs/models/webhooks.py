"""Webhooks: addresses that BenchLab reports to, and the outcome of each report."""

from typing import TypeAlias

from django.db import models
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class Webhook(models.Model):
    """An address that receives signed reports of a project's events. The secret is encrypted."""

    project = models.ForeignKey("Project", models.CASCADE, related_name="webhooks")
    url = models.URLField(max_length=500)
    encrypted_secret = models.TextField()
    events = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project", "pk"]

    def __str__(self) -> str:
        return self.url


class DeliveryState(models.TextChoices):
    """The state of a delivery; see `WebhookDelivery.State`."""

    WAITING = "waiting", _("waiting")
    DELIVERED = "delivered", _("delivered")
    GIVEN_UP = "given_up", _("given up")


class WebhookDelivery(models.Model):
    """One report to one webhook, with its tries. The payload is sent byte for byte as stored."""

    State: TypeAlias = DeliveryState

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
        constraints = [is_one_of("state", DeliveryState, name="delivery_state_is_known")]
        indexes = [
            models.Index(
                fields=["next_try_at"],
                condition=models.Q(state="waiting"),
                name="delivery_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event}: {self.state}"
