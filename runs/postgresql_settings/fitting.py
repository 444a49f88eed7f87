"""One configuration for many versions: what each of them would really run with.

Settings are translated from the version that they are written for, what BenchLab sets itself and
what would run commands on the server is left out, and the rest is checked.

Only those that change what a cluster is; its place, its owner and how to log in are
BenchLab's own. Which version knows which option: `runs.execution.clusters.initdb_options`.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runs.postgresql_settings import comparability_warnings, translation, unlisted
from runs.postgresql_settings.catalogue import MAJORS, UNRELEASED, position, setting
from runs.postgresql_settings.combinations import WAL_SEGMENT_BYTES
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.findings import Finding, merged
from runs.postgresql_settings.translation import Change, Note
from runs.postgresql_settings.validation import check, errors
from runs.wording import gettext_noop as _

# BenchLab's clusters do this their own way, so the setting is not needed.
_LEFT_OUT = frozenset(
    {"set_by_benchlab", "outside_cluster", "needs_certificate", "runs_command"}
)
# Without any command, a server that archives would keep all its WAL until the disk is full.
_ARCHIVES_NOTHING = (
    "true",
    _("No user's command runs on the database host; WAL counts as archived."),
)
_SINGLE = _("%(name)s is of a standby or a recovery; BenchLab makes those itself.")


@dataclass(frozen=True)
class Fitted:
    """A configuration as `major` runs it, translated from `written_for`.

    `changes` have another name or value than was written, `left_out` are not there at all, each
    with its reason. `findings` are what the check says of the rest: with an error among them the
    server does not start.
    """

    written_for: str
    major: str
    settings: Mapping[str, str]
    changes: tuple[Change, ...]
    left_out: tuple[Change, ...]
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Those with which a run cannot start."""
        return errors(self.findings)

    @property
    def max_connections(self) -> int:
        """How many connections a server with these settings takes."""
        return int(Effective(self.settings, self.major).number("max_connections") or 0)


def fit(
    settings: Mapping[str, str],
    major: str,
    *,
    varied: Mapping[str, str] | None = None,
    written_for: str = "",
    memory_bytes: int | None = None,
    wal_segment_bytes: int = WAL_SEGMENT_BYTES,
) -> Fitted:
    """What the version would run with, where `varied` replace the settings of these names.

    Without `written_for` the settings are taken to be in the words of the version nearest to
    `major` that objects least; each of the varied ones may be in those of another version. Takes
    some milliseconds the first time. Raises UnknownVersion.
    """
    if not varied:
        setting_pairs = tuple(settings.items())
        return _fit(setting_pairs, major, written_for, memory_bytes, wal_segment_bytes)
    alone = functools.partial(fit, major=major, wal_segment_bytes=wal_segment_bytes)
    base = alone(settings, written_for=written_for)
    fitted_alone = [alone({name: value}) for name, value in varied.items()]
    chosen = {
        name: value
        for fitted in fitted_alone
        for name, value in fitted.settings.items()
    }
    replaced = {name.lower() for name in chosen}
    unreplaced = {
        name: setting_value
        for name, setting_value in base.settings.items()
        if name.lower() not in replaced
    }
    together = alone(
        {**unreplaced, **chosen}, written_for=major, memory_bytes=memory_bytes
    )
    changes = [
        change for change in base.changes if change.name_to.lower() not in replaced
    ]
    return replace(
        together,
        written_for=base.written_for,
        changes=(
            *changes,
            *(change for fitted in fitted_alone for change in fitted.changes),
        ),
        left_out=(
            *base.left_out,
            *(lost for fitted in fitted_alone for lost in fitted.left_out),
        ),
        notes=(
            *base.notes,
            *(note for fitted in fitted_alone for note in fitted.notes),
        ),
    )


def home(settings: Mapping[str, str], major: str) -> str:
    """The version nearest to `major` in whose words the settings are. Raises UnknownVersion."""
    setting_pairs = tuple(settings.items())
    position_of_major = position(major)
    released = [
        released_major
        for released_major in MAJORS
        if released_major not in UNRELEASED or released_major == major
    ]
    return min(
        released,
        key=lambda released_major: (
            _objections(setting_pairs, released_major),
            abs(position(released_major) - position_of_major),
        ),
    )


def across(fitted: Sequence[Fitted]) -> tuple[Finding, ...]:
    """What prevents comparing runs of these versions: differing defaults that nobody has set."""
    if len(fitted) < 2:
        return ()
    names = {name for fitted_version in fitted for name in fitted_version.settings}
    # A version that does not have a setting is not what it was left out of.
    everywhere = {
        name
        for name in names
        if all(
            name in fitted_version.settings
            or setting(name, fitted_version.major) is None
            for fitted_version in fitted
        )
    }
    majors = sorted({fitted.major for fitted in fitted}, key=position)
    return tuple(comparability_warnings.across(dict.fromkeys(everywhere, ""), majors))


def merged_findings(fitted: Iterable[Fitted]) -> tuple[Finding, ...]:
    """The findings of all versions, errors first, each once with the versions that have it."""
    return merged(finding for fitted in fitted for finding in fitted.findings)


@functools.lru_cache(maxsize=512)
def _fit(
    setting_pairs: tuple[tuple[str, str], ...],
    major: str,
    written_for: str,
    memory_bytes: int | None,
    wal_segment_bytes: int,
) -> Fitted:
    source = written_for or home(dict(setting_pairs), major)
    remaining, own_changes = _remove_own_settings(dict(setting_pairs), source)
    done = translation.translate(
        remaining, source, major, wal_segment_bytes=wal_segment_bytes
    )
    lost = {change.name_from for change in done.impossible}
    conflicting = tuple(
        Change(name, value, "", "", _SINGLE, {"name": name})
        for name, value in done.recovery_conf.items()
        if name not in lost
    )
    settings, owned = _remove_own_settings(done.settings, major)
    left_out = (*own_changes, *owned, *done.impossible, *conflicting)
    instead = _archiving_nothing(settings, major, left_out)
    settings |= {change.name_to: change.value_to for change in instead}
    replaced = {change.name_from for change in instead}
    return Fitted(
        source,
        major,
        settings,
        (*(change for change in done.changes if change.name_to in settings), *instead),
        tuple(change for change in left_out if change.name_from not in replaced),
        done.notes,
        tuple(
            finding
            for finding in check(
                settings,
                [major],
                memory_bytes=memory_bytes,
                wal_segment_bytes=wal_segment_bytes,
            )
            # For larger WAL segments, initdb itself writes larger WAL sizes into postgresql.conf.
            if not (
                finding.code == "less_than_two_segments"
                and finding.name not in settings
            )
        ),
    )


def _archiving_nothing(
    settings: Mapping[str, str], major: str, left_out: Sequence[Change]
) -> tuple[Change, ...]:
    """What takes the place of an archive_command that was left out, where archiving is on."""
    effective = Effective(settings, major)
    mode = effective.word("archive_mode")
    if not effective.is_on("archive_mode") and mode not in {*unlisted.ON, "always"}:
        return ()
    return tuple(
        Change(
            change.name_from, change.value_from, "archive_command", *_ARCHIVES_NOTHING
        )
        for change in left_out
        if change.name_from.lower() == "archive_command"
    )


def _remove_own_settings(
    settings: Mapping[str, str], major: str
) -> tuple[dict[str, str], tuple[Change, ...]]:
    finding_of_name = {
        finding.name.lower(): finding
        for finding in check(settings, [major])
        if finding.code in _LEFT_OUT
    }
    remaining = {
        name: value
        for name, value in settings.items()
        if name.lower() not in finding_of_name
    }
    own_changes = tuple(
        Change(
            name,
            value,
            "",
            "",
            finding_of_name[name.lower()].message,
            finding_of_name[name.lower()].parameters,
        )
        for name, value in settings.items()
        if name.lower() in finding_of_name
    )
    return remaining, own_changes


@functools.lru_cache(maxsize=512)
def _objections(setting_pairs: tuple[tuple[str, str], ...], major: str) -> int:
    return len(errors(check(dict(setting_pairs), [major], for_run=False)))


_FLAGS = frozenset(
    {
        "--allow-group-access",
        "--data-checksums",
        "--no-data-checksums",
        "--no-locale",
        "-g",
        "-k",
    }
)
_WITH_VALUE = frozenset(
    {
        "--builtin-locale",
        "--encoding",
        "--icu-locale",
        "--icu-rules",
        "--lc-collate",
        "--lc-ctype",
        "--lc-messages",
        "--lc-monetary",
        "--lc-numeric",
        "--lc-time",
        "--locale",
        "--locale-provider",
        "--text-search-config",
        "--wal-segsize",
    }
)
OFFERED = (*sorted(_FLAGS), *(f"{name}=" for name in sorted(_WITH_VALUE)))
REFUSED = _("initdb option %(option)s cannot be given here; known are: %(known)s.")

_SEGMENT = re.compile(r"--wal-segsize=(\d{1,4})")


def refused(options: Iterable[str]) -> list[str]:
    """Those options that a configuration may not have."""
    return [option for option in options if not _is_allowed(option)]


def wal_segment_bytes(options: Iterable[str]) -> int:
    """The size of a WAL segment of clusters that are made with these options."""
    matches = (_SEGMENT.fullmatch(option) for option in options)
    sizes = [int(match[1]) * 1024 * 1024 for match in matches if match]
    return sizes[-1] if sizes else WAL_SEGMENT_BYTES


def _is_allowed(option: str) -> bool:
    name, equals, value = option.partition("=")
    if equals:
        return name in _WITH_VALUE and bool(value) and value.isprintable()
    return name in _FLAGS
