"""What a campaign expects of uploads: how often they come, and their branch."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request

from runs.api.known_fields import refuse_others
from runs.models import Campaign
from runs.selectors.histories import revisions
from runs.services.changes import missing_uploads as watchdog

LONGEST = 366 * 24 * 3600


class ExpectedSerializer(serializers.Serializer[Any]):
    """What is given is changed, the rest stays."""

    expected_every = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=LONGEST,
        help_text="Seconds; uploads that stay away for longer are told. Null: none are expected.",
    )
    tracked_ref = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="The branch that makes the history; empty for all revisions.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown fields, and a change of nothing."""
        refuse_others(self.initial_data, self.fields)
        if not attrs:
            raise ValidationError(_("Say what to change."), "required")
        return attrs


def _refuse_unknown_ref(campaign: Campaign, ref: str) -> None:
    """A branch that no run is of would empty the history."""
    if not revisions.measured(campaign).filter(revisions.on_ref(ref)).exists():
        message = _("No run of the campaign is of the branch “%(ref)s”.") % {"ref": ref}
        raise ValidationError({"tracked_ref": [ErrorDetail(message, "unknown_ref")]})


@transaction.atomic
def expect(request: Request, campaign: Campaign) -> None:
    """Keep what the request says. Raises ValidationError."""
    given = ExpectedSerializer(data=request.data)
    given.is_valid(raise_exception=True)
    found = given.validated_data
    if ref := found.get("tracked_ref"):
        _refuse_unknown_ref(campaign, ref)
    if "expected_every" in found:
        seconds = found["expected_every"]
        every = None if seconds is None else timedelta(seconds=seconds)
        watchdog.expect(campaign=campaign, every=every)
    if "tracked_ref" in found:
        watchdog.track(campaign=campaign, ref=found["tracked_ref"])
