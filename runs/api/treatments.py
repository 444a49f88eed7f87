"""A campaign's treatment, as the API takes it."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from runs.execution import privileged
from runs.execution.treatment import Treatment


class TreatmentSerializer(serializers.Serializer[Any]):
    """What is done to the machines of every run; what is left out is not done."""

    cold_cache = serializers.BooleanField(
        default=False, help_text="Empty the OS caches before each run; nothing is read ahead."
    )
    governor = serializers.ChoiceField(
        choices=privileged.GOVERNORS,
        default="",
        allow_blank=True,
        help_text="The CPU governor during the run; what was there before is set back.",
    )
    server_cpus = serializers.CharField(
        default="", allow_blank=True, max_length=200, help_text="As in 0-3,8; empty is all."
    )
    pgbench_cpus = serializers.CharField(
        default="", allow_blank=True, max_length=200, help_text="The same for the load."
    )
    profile = serializers.BooleanField(
        default=False, help_text="Profile each run by perf; it costs some throughput."
    )

    def to_internal_value(self, data: Any) -> Any:
        """The values; a field that is not known is refused."""
        if isinstance(data, Mapping) and (unknown := set(data) - set(self.fields)):
            known = ", ".join(self.fields)
            message = _("Unknown field; known are: %(known)s.") % {"known": known}
            fault = [ErrorDetail(message, "unknown_field")]
            raise ValidationError({str(name): fault for name in sorted(map(str, unknown))})
        return super().to_internal_value(data)


def treatment_of(given: Mapping[str, Any] | None) -> Treatment:
    """Of a valid body."""
    return Treatment(**(given or {}))


FIELDS = frozenset(Treatment.__dataclass_fields__)
