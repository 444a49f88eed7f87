"""The fields of a campaign's treatment in its form."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from runs.campaigns.services import treatments
from runs.campaigns.services.campaign_limits import MOST_CHARACTERS, MOST_SETTINGS
from runs.execution.machine import cpus, privileged
from runs.execution.machine.treatment import Treatment
from runs.models import Installation, Server
from runs.postgresql_settings.catalogue import canonical
from runs.scenarios.definition import Factor, NameFactor
from runs.servers.selectors import builds
from runs.servers.services.tools import installed
from runs.shared.formats import named
from runs.shared.whole_numbers import whole_number
from runs.tools.pgbench import version_text

EVIDENCE = (
    "profile",
    "waits",
    "statements",
    "io",
    "syscalls",
    "stacks",
    "instructions",
)
NAMES = ("cold_cache", "governor", "server_cpus", "pgbench_cpus", *EVIDENCE)


class CPUsField(forms.CharField):
    """A list of processors; it is kept in one spelling."""

    def clean(self, value: Any) -> str:
        """The list, or nothing. A ValidationError says what a list looks like."""
        text = super().clean(value)
        try:
            return cpus.spelled(cpus.parse(text)) if text else ""
        except ValueError as error:
            message = _("%(text)s is not a list of CPUs. Give numbers, as in 0-3,8.")
            raise forms.ValidationError(message, params={"text": text[:40]}) from error


class TreatmentFields(forms.Form):
    """What is done to the machines of every run; by default nothing."""

    cold_cache = forms.BooleanField(
        label=_("Empty the caches before each measurement"),
        required=False,
        help_text=_("PostgreSQL is restarted, and nothing is read ahead."),
    )
    governor = forms.ChoiceField(
        label=_("CPU governor during the run"),
        choices=[
            ("", _("as it is")),
            *((governor, governor) for governor in privileged.GOVERNORS),
        ],
        required=False,
        help_text=_("The previous values are restored, however the run ends."),
    )
    server_cpus = CPUsField(
        label=_("CPUs of the server"),
        max_length=200,
        required=False,
        help_text=_("As in 0-3,8; left empty, PostgreSQL runs on all of them."),
    )
    pgbench_cpus = CPUsField(
        label=_("CPUs of pgbench"),
        max_length=200,
        required=False,
        help_text=_("On each machine that puts the load on."),
    )
    profile = forms.BooleanField(
        label=_("Profile by perf"),
        required=False,
        help_text=_(
            "A report and a flame graph of each run; it costs some throughput."
        ),
    )
    waits = forms.BooleanField(
        label=_("Wait events"),
        required=False,
        help_text=_(
            "What sessions wait for, five times a second, and whether the kernel says that they "
            "sleep (11 and later)."
        ),
    )
    statements = forms.BooleanField(
        label="pg_stat_statements",
        required=False,
        help_text=_("The statements that took the most time; it costs a little."),
    )
    io = forms.BooleanField(
        label="pg_stat_io",
        required=False,
        help_text=_("Reads, writes and hits by kind of process (16 and later)."),
    )
    syscalls = forms.BooleanField(
        label=_("System calls (strace -c)"),
        required=False,
        help_text=_("Takes half of the throughput: such runs count in no comparison."),
    )
    stacks = forms.BooleanField(
        label=_("Stacks of semaphores (strace -k)"),
        required=False,
        help_text=_("Who waits for locks, by function; for 2 seconds, as costly."),
    )

    instructions = forms.BooleanField(
        label=_("Instructions (callgrind)"),
        required=False,
        help_text=_(
            "Those of the load's statements by function, counted after the load; a minute a run."
        ),
    )

    # The database servers, given by the form that has these fields.
    servers: Sequence[Server]

    @property
    def offered(self) -> dict[str, bool]:
        """What the servers permit, or what was asked for: then the problem is shown there."""
        permitted = [treatments.offered(server) for server in self.servers]
        names = ("cold_cache", "governor")
        return {
            n: all(permissions[n] for permissions in permitted)
            or bool(self.data.get(n))
            for n in names
        }

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
        return [
            server
            for server in self.servers
            if not all(treatments.offered(server).values())
        ]


# Of a campaign, and characters of a value, which is part of the cells' keys.
# Nobody ticks more; a longer list does not come from our form.
MOST_CHOSEN = 1000


_RANGE = re.compile(r"\d{1,9}(?:-|–|~|〜|～|\.\.)\d{1,9}", re.ASCII)


def _words(line: str | None) -> list[str]:
    """The levels of a factor that are written in a line."""
    return [word for word in re.split(r"[\s,、;]+", line or "") if word]


class LevelsField(forms.CharField):
    """Whole numbers of a factor in a line: "1, 2, 4"."""

    def __init__(self, *, factor: Factor, **options: Any) -> None:
        super().__init__(**options)
        self.factor = factor

    def clean(self, value: Any) -> list[int]:
        """The numbers in the order given; a ValidationError names the first that is at fault."""
        words = _words(super().clean(value))
        for word in words:
            if _RANGE.fullmatch(word):
                message = _(
                    "%(word)s is a range: write each number, such as 1, 2, 4, 8."
                )
                raise forms.ValidationError(message, params={"word": word[:40]})
            if not re.fullmatch(r"\d{1,9}", word, re.ASCII):
                message = _("%(word)s is not a whole number.")
                raise forms.ValidationError(message, params={"word": word[:40]})
            if not self.factor.accepts(int(word)):
                message = _(
                    "%(word)s is out of range. Choose from %(minimum)s to %(maximum)s."
                )
                bounds = {
                    "minimum": f"{self.factor.minimum:,}",
                    "maximum": f"{self.factor.maximum:,}",
                }
                raise forms.ValidationError(message, params={"word": word, **bounds})
        return [int(word) for word in words]


class NamesField(forms.CharField):
    """Names of a factor in a line: "bench.sh, suite.sh"."""

    def __init__(self, *, factor: NameFactor, **options: Any) -> None:
        super().__init__(**options)
        self.factor = factor

    def clean(self, value: Any) -> list[str]:
        """The names in the order given; a ValidationError quotes the first that is at fault."""
        words = _words(super().clean(value))
        for word in words:
            if not self.factor.accepts(word):
                message = _("%(word)s is not such a name.")
                raise forms.ValidationError(message, params={"word": word[:100]})
        return words


class ChoicesField(forms.MultipleChoiceField):
    """Levels that have names, as boxes to tick."""

    widget = forms.CheckboxSelectMultiple

    def prepare_value(self, value: Any) -> Any:
        """The ticked ones; also of the text "off, on" that an address or a print gives."""
        if not isinstance(value, str):
            return value
        # Levels may have blanks in their names: "sequential read, sequential write".
        return [choice.strip() for choice in re.split(r"[,、;]+", value)]


# As whichever design shows more on the server.
AUTOMATIC = "auto"


class SlicesField(forms.TypedChoiceField):
    """Whole runs (None), slices of so many seconds, or AUTOMATIC."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Measured"),
            choices=[
                ("", _("in whole runs, one after the other")),
                (AUTOMATIC, _("as shows more on this server")),
                ("1", _("in slices of 1 s, in turn")),
                ("2", _("in slices of 2 s, in turn")),
                ("3", _("in slices of 3 s, in turn")),
            ],
            coerce=lambda value: value if value == AUTOMATIC else int(value),
            empty_value=None,
            required=False,
            help_text=_(
                "In turn all clusters are up at once, and the order is drawn in each round: what "
                "disturbs the machine disturbs all alike. The duration is that of all slices of a "
                "run."
            ),
        )


class ClientField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """The installation whose pgbench generates the load."""

    def label_from_instance(self, obj: Any) -> str:
        """The version of the tool, which need not be that of a server, and its folder."""
        return f"pgbench {version_text(obj.pgbench_version_num)} · {obj.bindir}"


class InstallationsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """The installations of a server, with their folders where a version has several builds."""

    widget = forms.CheckboxSelectMultiple
    versions: Mapping[str, int] = {}

    def label_from_instance(self, obj: Any) -> str:
        """The version; two builds of one version differ by their folder."""
        return (
            f"{obj} · {obj.bindir}"
            if self.versions.get(obj.version, 2) > 1
            else str(obj)
        )


class VersionsField(forms.MultipleChoiceField):
    """Versions of PostgreSQL on several servers, each with the servers that have it."""

    widget = forms.CheckboxSelectMultiple

    def offer(self, servers: Sequence[Server]) -> list[str]:
        """Offer what is on the servers; the versions that all of them have. One query."""
        present = installed(servers)
        installations = sorted(
            (installation for server in servers for installation in present[server.pk]),
            key=lambda installation: installation.version_num,
        )
        names: dict[str, dict[str, None]] = {}
        by_key = {server.pk: server.name for server in servers}
        for installation in installations:
            names.setdefault(installation.version, {})[
                by_key[installation.server_id]
            ] = None
        common = [version for version, on in names.items() if len(on) == len(servers)]
        self.choices = [
            (version, _version_label(version, list(on), version in common))
            for version, on in names.items()
        ]
        return common


class TickedField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Servers to tick: further databases, or where the load comes from."""

    widget = forms.CheckboxSelectMultiple

    def clean(self, value: Any) -> Any:
        """Those that are ticked."""
        return list(super().clean(value))


class SettingsField(forms.CharField):
    """Settings that vary, one a line: "shared_buffers: 1GB, 4GB"."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        """As text; also of the values by name that a design has."""
        if isinstance(value, Mapping):
            return "\n".join(
                f"{name}: {', '.join(levels)}" for name, levels in value.items()
            )
        return value

    def clean(self, value: Any) -> dict[str, list[str]]:
        """The values by the name, as PostgreSQL spells it; a ValidationError names a bad line."""
        levels_of: dict[str, list[str]] = {}
        for line in (super().clean(value) or "").splitlines():
            if not line.strip():
                continue
            name, separator, text = re.sub("[：=]", ":", line, count=1).partition(":")
            levels = [level.strip() for level in re.split(r"[,、;]", text)]
            name = canonical(name.strip())
            if not separator or not name or name in levels_of:
                message = _("“%(line)s” is not a setting with its values.")
                raise forms.ValidationError(message, params={"line": line.strip()[:60]})
            levels_of[name] = [level for level in levels if level]
            if any(len(level) > MOST_CHARACTERS for level in levels_of[name]):
                message = _("A value of %(name)s is too long to vary.")
                raise forms.ValidationError(message, params={"name": name[:60]})
        if len(levels_of) > MOST_SETTINGS:
            message = _("%(number)d settings are too many to vary.")
            raise forms.ValidationError(message, params={"number": len(levels_of)})
        return levels_of


class ConfigurationField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A configuration to choose, by its name in the reader's language."""

    label_from_instance = staticmethod(named)  # type: ignore[assignment]


class ConfigurationsField(TickedField):
    """Configurations to tick, by their names in the reader's language."""

    label_from_instance = staticmethod(named)  # type: ignore[assignment]


def match_offered(data: QueryDict, servers: Sequence[Server]) -> QueryDict:
    """What was sent, with its installations as the form for these servers offers them.

    Without JavaScript it may be sent for another choice of servers: versions, or installations.
    """
    sent = data.copy()
    other_slugs = [
        slug for slug in sent.getlist("more_servers") if slug != servers[0].slug
    ]
    sent.setlist("more_servers", other_slugs)
    if chosen := [str(value) for value in sent.getlist("installations")]:
        sent.setlist("installations", _translated(chosen, servers))
    return sent


def still_ticked(data: QueryDict, servers: Sequence[Server]) -> list[str]:
    """What was ticked and these servers have as well, or of another's boxes the versions."""
    ticked = match_offered(data, servers).getlist("installations")
    if len(servers) > 1 or not ticked:
        return ticked
    present = installed(servers)[servers[0].pk]
    elsewhere = Installation.objects.filter(pk__in=ticked[:MOST_CHOSEN]).exclude(
        server=servers[0]
    )
    versions = set(elsewhere.values_list("version", flat=True))
    return [
        str(installation.pk)
        for installation in present
        if str(installation.pk) in ticked or installation.version in versions
    ]


def expand_versions(versions_asked: str, servers: Sequence[Server]) -> list[str]:
    """What the servers have of the versions asked for (with commas between; `all`), built alike.

    A version is a major one (16) or a release (16.14).
    """
    version_texts = {text.strip() for text in versions_asked.split(",")} - {""}
    present = installed(servers)[servers[0].pk] if version_texts else []
    asked_for = (
        installation
        for installation in present
        if version_texts == {"all"}
        or version_texts & {installation.major, installation.version}
    )
    installations = builds.chosen(asked_for)
    return [
        installation.version if len(servers) > 1 else str(installation.pk)
        for installation in installations
    ]


def _translated(chosen: Sequence[str], servers: Sequence[Server]) -> list[str]:
    keys = [text for text in chosen if whole_number(text) is not None]
    if len(servers) > 1:
        versions = [text for text in chosen if not text.isdecimal()]
        installations = (
            Installation.objects.filter(pk__in=keys[:MOST_CHOSEN]) if keys else ()
        )
        return list(
            dict.fromkeys(
                [*versions, *(installation.version for installation in installations)]
            )
        )
    if len(keys) == len(chosen):
        return keys
    present = installed(servers)[servers[0].pk]
    return [
        *keys,
        *(
            str(installation.pk)
            for installation in present
            if installation.version in chosen
        ),
    ]


def _version_label(version: str, names: Sequence[str], is_common: bool) -> str:
    where_text = _("on every server") if is_common else _("only on %(servers)s")
    return f"PostgreSQL {version} · {where_text % {'servers': ', '.join(names)}}"
