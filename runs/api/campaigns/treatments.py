"""A campaign's treatment, as the API takes it."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from runs.api.known_fields import StrictSerializer
from runs.execution import privileged
from runs.execution.treatment import Treatment


class TreatmentSerializer(StrictSerializer):
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
    waits = serializers.BooleanField(
        default=False, help_text="What sessions wait for, as a table and as series (9.6+)."
    )
    statements = serializers.BooleanField(
        default=False, help_text="pg_stat_statements of the load; needs the extension."
    )
    io = serializers.BooleanField(default=False, help_text="pg_stat_io of the load (16+).")
    syscalls = serializers.BooleanField(
        default=False, help_text="Counts of system calls by strace; halves the throughput."
    )
    stacks = serializers.BooleanField(
        default=False, help_text="Stacks of semaphore calls by strace, for 2 seconds."
    )


def treatment_of(given: Mapping[str, Any] | None) -> Treatment:
    """Of a valid body."""
    return Treatment(**(given or {}))


FIELDS = frozenset(Treatment.__dataclass_fields__)
