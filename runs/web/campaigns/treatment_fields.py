"""The fields of a campaign's treatment in its form."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from runs.execution import cpus, privileged
from runs.execution.treatment import Treatment
from runs.models import Server
from runs.services.campaigns import treatments

EVIDENCE = ("profile", "waits", "statements", "io", "syscalls", "stacks")
NAMES = ("cold_cache", "governor", "server_cpus", "pgbench_cpus", *EVIDENCE)


class CPUsField(forms.CharField):
    """A list of processors; it is kept in one spelling."""

    def clean(self, value: Any) -> str:
        """The list, or nothing. A ValidationError says what a list looks like."""
        text = super().clean(value)
        try:
            return cpus.spelled(cpus.parse(text)) if text else ""
        except ValueError as error:
            message = gettext_lazy("%(text)s is not a list of CPUs. Give numbers, as in 0-3,8.")
            raise forms.ValidationError(message, params={"text": text[:40]}) from error


class TreatmentFields(forms.Form):
    """What is done to the machines of every run; by default nothing."""

    cold_cache = forms.BooleanField(
        label=gettext_lazy("Empty the caches before each measurement"),
        required=False,
        help_text=gettext_lazy("PostgreSQL is restarted, and nothing is read ahead."),
    )
    governor = forms.ChoiceField(
        label=gettext_lazy("CPU governor during the run"),
        choices=[("", gettext_lazy("as it is")), *((each, each) for each in privileged.GOVERNORS)],
        required=False,
        help_text=gettext_lazy("The previous values are restored, however the run ends."),
    )
    server_cpus = CPUsField(
        label=gettext_lazy("CPUs of the server"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("As in 0-3,8; left empty, PostgreSQL runs on all of them."),
    )
    pgbench_cpus = CPUsField(
        label=gettext_lazy("CPUs of pgbench"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("On each machine that puts the load on."),
    )
    profile = forms.BooleanField(
        label=gettext_lazy("Profile by perf"),
        required=False,
        help_text=gettext_lazy("A report and a flame graph of each run; it costs some throughput."),
    )
    waits = forms.BooleanField(
        label=gettext_lazy("Wait events"),
        required=False,
        help_text=gettext_lazy(
            "What sessions wait for, asked five times a second (9.6 and later)."
        ),
    )
    statements = forms.BooleanField(
        label="pg_stat_statements",
        required=False,
        help_text=gettext_lazy("The statements that took the most time; it costs a little."),
    )
    io = forms.BooleanField(
        label="pg_stat_io",
        required=False,
        help_text=gettext_lazy("Reads, writes and hits by kind of process (16 and later)."),
    )
    syscalls = forms.BooleanField(
        label=gettext_lazy("System calls (strace -c)"),
        required=False,
        help_text=gettext_lazy("Takes half of the throughput: such runs count in no comparison."),
    )
    stacks = forms.BooleanField(
        label=gettext_lazy("Stacks of semaphores (strace -k)"),
        required=False,
        help_text=gettext_lazy("Who waits for locks, by function; for 2 seconds, as costly."),
    )

    # The database servers, given by the form that has these fields.
    servers: Sequence[Server]

    @property
    def may_empty_caches(self) -> bool:
        """Whether the servers permit it, or it was asked for: then the problem is shown there."""
        return self._is_offered("cold_cache")

    @property
    def may_set_governor(self) -> bool:
        """The same of the governor."""
        return self._is_offered("governor")

    @property
    def evidence_fields(self) -> list[forms.BoundField]:
        """What explains a number, while the load is on."""
        return [self[name] for name in EVIDENCE]

    def treatment(self) -> Treatment:
        """The chosen treatment. Only for a valid form."""
        return Treatment(**{name: self.cleaned_data[name] for name in NAMES})

    @property
    def not_permitting(self) -> list[Server]:
        """The servers on which something of it is not ticked."""
        return [each for each in self.servers if not all(treatments.offered(each).values())]

    def _is_offered(self, name: str) -> bool:
        is_permitted = all(treatments.offered(each)[name] for each in self.servers)
        return is_permitted or bool(self.data.get(name))
