"""Carries settings from one version to another, and says what changed, what is lost, and what
the other version does differently without being asked.

It goes version by version, so that each release's changes are written once, in `translation_rules`.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from runs.postgresql_settings import (
    carried_defaults,
    units,
    unlisted,
    values,
    version_notes,
)
from runs.postgresql_settings.catalogue import (
    MAJORS,
    Setting,
    canonical,
    catalogue,
    existence,
    is_older,
    position,
    setting,
)
from runs.postgresql_settings.combinations import WAL_SEGMENT_BYTES
from runs.postgresql_settings.comparability_warnings import felt_newcomers
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.translation_rules import RULES, Context, Rule
from runs.postgresql_settings.values import BadValue
from runs.wording import gettext_noop as _

RECOVERY_CONF_ENDS = "12"
_SAME_AMOUNT = _("The same amount as PostgreSQL %(major)s writes it.")


@dataclass(frozen=True)
class Change:
    """A setting that has another name or value in the target version.

    Without a `name_to` nothing there does the work of it. `reason` is a translatable template,
    `parameters` belong into it.
    """

    name_from: str
    value_from: str
    name_to: str
    value_to: str
    reason: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Note:
    """What differs between the versions though nobody set it."""

    name: str
    message: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Translation:
    """Settings for the target version, with what became of the source's.

    `recovery_conf` are those that stand in a file of their own to version 11.
    """

    settings: Mapping[str, str]
    changes: tuple[Change, ...]
    impossible: tuple[Change, ...]
    notes: tuple[Note, ...]
    recovery_conf: Mapping[str, str]


def translate(
    settings: Mapping[str, str],
    source_major: str,
    target_major: str,
    *,
    wal_segment_bytes: int = WAL_SEGMENT_BYTES,
) -> Translation:
    """The settings in the target version's words.

    To version 11 the settings may hold those of recovery.conf. Names that no version knows, and
    values that the source version itself would refuse, are left unchanged for `check`.
    Raises UnknownVersion.
    """
    journey = _Journey(settings, source_major)
    for source, target in _steps(source_major, target_major):
        journey.step(Context(source, target, wal_segment_bytes))
    return _carry_defaults(
        settings, source_major, target_major, journey.arrived(target_major)
    )


def _carry_defaults(
    written: Mapping[str, str], source: str, target: str, translated: Translation
) -> Translation:
    """With the old defaults that given settings depend on."""
    there = {**translated.settings, **translated.recovery_conf}
    carried = list(carried_defaults.carried(written, source, there, target))
    if not carried:
        return translated
    given_settings = Effective(written, source).given
    changes = [
        Change(
            rule.because, given_settings[rule.because], rule.name, value, rule.reason
        )
        for rule, value in carried
    ]
    names = {rule.name for rule, _value in carried}
    return replace(
        translated,
        settings={
            **translated.settings,
            **{rule.name: value for rule, value in carried},
        },
        changes=(*translated.changes, *changes),
        notes=tuple(note for note in translated.notes if note.name not in names),
    )


class _Journey:
    def __init__(self, settings: Mapping[str, str], major: str) -> None:
        self.major = major
        # Settings on their way, by the name that they have now.
        self.live: dict[str, Change] = {}
        self.lost: list[Change] = []
        for name, value in settings.items():
            today = canonical(unlisted.alias(name, major) or name)
            reason = (
                ""
                if today == canonical(name)
                else _("Another name of the same setting.")
            )
            self.live[today] = Change(name, value, today, value, reason)

    def step(self, context: Context) -> None:
        """Carry everything to the next version, or the one before."""
        if _has_file(context.source) and not _has_file(context.target):
            self._leave_recovery_conf()
        elif _has_file(context.target) and not _has_file(context.source):
            self._enter_recovery_conf()
        pending, self.live = self.live, {}
        # The rules of this step by the name that a setting has before it.
        forward = _is_forward(context)
        context_major = context.target if forward else context.source
        rules = {
            rule.older if forward else rule.newer: rule
            for rule in RULES
            if rule.at == context_major
        }
        for name, live in pending.items():
            if name in rules:
                self._apply_rule(rules[name], live, context)
            else:
                self._carry_setting(name, live, context)

    def arrived(self, target: str) -> Translation:
        """What has become of everything."""
        in_recovery_conf = (
            self.live.keys() & version_notes.RECOVERY_CONF
            if _has_file(target)
            else set()
        )
        return Translation(
            {
                name: live.value_to
                for name, live in self.live.items()
                if name not in in_recovery_conf
            },
            tuple(_changes(self.live)),
            tuple(self.lost),
            tuple(_notes(self.live, self.major, target)),
            {
                name: live.value_to
                for name, live in self.live.items()
                if name in in_recovery_conf
            },
        )

    def _apply_rule(self, rule: Rule, live: Change, context: Context) -> None:
        carries = {rule.newer: rule.forward, **rule.also}
        if not _is_forward(context):
            carries = {rule.older: rule.backward}
        try:
            carried = {
                name: carry(live.value_to, context) for name, carry in carries.items()
            }
        except BadValue as bad:
            self._lose(live, bad.finding.message, bad.finding.parameters)
            return
        for name, value in carried.items():
            if value is None:
                self._lose(live, rule.lost, {})
            else:
                changed = rule.older != rule.newer or value != live.value_to
                self.live[name] = _moved(
                    live, name, value, rule.reason if changed else ""
                )

    def _carry_setting(self, name: str, live: Change, context: Context) -> None:
        if not _exists(name, context.target) and _exists(name, context.source):
            self._lose(live, *_gone(name, context))
            return
        source_setting, target_setting = (
            setting(name, context.source),
            setting(name, context.target),
        )
        if source_setting is None or target_setting is None:
            self.live[name] = live
            return
        if target_setting.is_preset and not source_setting.is_preset:
            values = {"name": name, "major": context.target}
            self._lose(
                live, _("%(name)s is read-only in PostgreSQL %(major)s."), values
            )
            return
        try:
            value, reason, parameters = _respelled(
                live.value_to, source_setting, target_setting
            )
        except BadValue as bad:
            self._lose(live, bad.finding.message, bad.finding.parameters)
            return
        if reason == _SAME_AMOUNT and live.reason:
            reason = ""  # the earlier report says more
        self.live[name] = _moved(live, name, value, reason, parameters)

    def _lose(self, live: Change, reason: str, parameters: Mapping[str, str]) -> None:
        lost = replace(
            live, name_to="", value_to="", reason=reason, parameters=parameters
        )
        self.lost.append(lost)

    def _leave_recovery_conf(self) -> None:
        mode = self.live.pop("standby_mode", None)
        if mode is not None:
            self._lose(
                mode, _("From 12 on, an empty file standby.signal makes a standby."), {}
            )
        self.live = {
            name: _moved(
                live,
                name,
                live.value_to,
                _("From 12 on it belongs in postgresql.conf."),
            )
            if name in version_notes.RECOVERY_CONF
            else live
            for name, live in self.live.items()
        }

    def _enter_recovery_conf(self) -> None:
        reason = _("Up to 11 it belongs in a separate file, recovery.conf.")
        for name, live in self.live.items():
            if name in version_notes.RECOVERY_CONF:
                self.live[name] = _moved(live, name, live.value_to, reason)
        if "primary_conninfo" in self.live:
            standby_reason = _("To 11, standby_mode in recovery.conf makes a standby.")
            conninfo = self.live["primary_conninfo"]
            self.live["standby_mode"] = _moved(
                conninfo, "standby_mode", "on", standby_reason
            )


def _steps(source: str, target: str) -> list[tuple[str, str]]:
    start, end = position(source), position(target)
    majors = MAJORS[start : end + 1] if start <= end else MAJORS[end : start + 1][::-1]
    return list(itertools.pairwise(majors))


def _is_forward(context: Context) -> bool:
    return is_older(context.source, context.target)


def _has_file(major: str) -> bool:
    return is_older(major, RECOVERY_CONF_ENDS)


def _exists(name: str, major: str) -> bool:
    """Whether the version knows the name, in postgresql.conf or in recovery.conf."""
    if setting(name, major) is not None or unlisted.may_be_backported(name, major):
        return True
    if name == "pause_at_recovery_target":
        return is_older(major, "9.5")
    first_major = version_notes.RECOVERY_CONF.get(name)
    return (
        first_major is not None
        and _has_file(major)
        and not is_older(major, first_major)
    )


def _moved(
    live: Change,
    name: str,
    value: str,
    reason: str,
    parameters: Mapping[str, str] | None = None,
) -> Change:
    """The same setting with another name or value; the last reported reason stays."""
    moved = replace(live, name_to=name, value_to=value)
    return (
        replace(moved, reason=reason, parameters=parameters or {}) if reason else moved
    )


def _respelled(
    value: str, source_setting: Setting, target_setting: Setting
) -> tuple[str, str, Mapping[str, str]]:
    """(value, reason, its parameters): the same amount as the other version writes it.

    Raises BadValue where the other version has nothing like it.
    """
    try:
        amount = values.parse(value, source_setting)
    except BadValue:
        return value, "", {}
    try:
        again = values.parse(value, target_setting)
        if isinstance(amount, str) or _same(
            amount, source_setting, again, target_setting
        ):
            return value, "", {}
    except BadValue:
        if isinstance(amount, str) or not target_setting.is_number:
            raise
    return _fitted(amount, source_setting, target_setting)


def _fitted(
    amount: float, source_setting: Setting, target_setting: Setting
) -> tuple[str, str, Mapping[str, str]]:
    exact = _convert_unit(amount, source_setting, target_setting)
    number = exact
    if target_setting.kind == "integer":
        # 0 often means "none at all", which a small amount must not become.
        number = round(exact) or (1 if exact > 0 else 0)
    low, high = target_setting.minimum, target_setting.maximum
    if low is not None and high is not None and not low <= number <= high:
        number = min(max(number, low), high)
    spelled = values.spelled(number, target_setting)
    parameters = {
        "name": target_setting.name,
        "value": spelled,
        "major": target_setting.major,
    }
    if number == exact:
        return spelled, _SAME_AMOUNT, parameters
    return (
        spelled,
        _("%(value)s is the nearest that PostgreSQL %(major)s takes."),
        parameters,
    )


def _same(
    source_value: values.Value,
    source_setting: Setting,
    target_value: values.Value,
    target_setting: Setting,
) -> bool:
    if (
        isinstance(source_value, str)
        or isinstance(target_value, str)
        or not (source_setting.unit and target_setting.unit)
    ):
        return (
            source_setting.kind != target_setting.kind or source_value == target_value
        )
    if source_value <= 0 or target_value <= 0:
        return source_value == target_value
    return source_value * units.size(source_setting.unit) == target_value * units.size(
        target_setting.unit
    )


def _convert_unit(
    amount: float, source_setting: Setting, target_setting: Setting
) -> float:
    if amount <= 0 or not (source_setting.unit and target_setting.unit):
        return amount
    return amount * units.size(source_setting.unit) / units.size(target_setting.unit)


def _gone(name: str, context: Context) -> tuple[str, Mapping[str, str]]:
    """Why the next version of this step has no such setting."""
    parameters = {"name": name, "major": context.target, "since": context.source}
    if _is_forward(context):
        reason = version_notes.REASONS.get(
            name, _("PostgreSQL %(major)s has no %(name)s.")
        )
        return reason, parameters
    has = existence(name)
    parameters["since"] = has[0] if has else context.source
    reason = version_notes.REASONS_BACK.get(
        name, _("%(name)s came with PostgreSQL %(since)s.")
    )
    return reason, parameters


def _changes(live: Mapping[str, Change]) -> Iterator[Change]:
    for name, change in live.items():
        same = (name, change.value_to) == (change.name_from, change.value_from)
        # What moves between postgresql.conf and recovery.conf changes though it reads the same.
        if change.reason and (not same or name in version_notes.RECOVERY_CONF):
            yield change


def _notes(live: Mapping[str, Change], source: str, target: str) -> Iterator[Note]:
    yield from _default_notes(live, source, target)
    older, newer = (source, target) if is_older(source, target) else (target, source)
    for name in felt_newcomers(older, newer):
        catalogued = setting(name, newer)
        if catalogued is None or name in live:
            continue
        parameters = {
            "name": name,
            "major": newer,
            "value": values.default(catalogued) or "''",
        }
        yield Note(
            name,
            _("PostgreSQL %(major)s has %(name)s, by default %(value)s.")
            if newer == target
            else _(
                "%(name)s, by default %(value)s in PostgreSQL %(major)s, does not exist."
            ),
            parameters,
        )


def _default_notes(
    live: Mapping[str, Change], source: str, target: str
) -> Iterator[Note]:
    for source_setting in catalogue(source).values():
        target_setting = setting(source_setting.name, target)
        if (
            target_setting is None
            or target_setting.is_preset
            or source_setting.name in live
            or source_setting.name in version_notes.NOT_FELT
        ):
            continue
        source_default, target_default = (
            values.default(source_setting),
            values.default(target_setting),
        )
        if source_default == target_default or (
            source_setting.kind == target_setting.kind
            and _same(
                values.parse(source_setting.boot, source_setting),
                source_setting,
                values.parse(target_setting.boot, target_setting),
                target_setting,
            )
        ):
            continue
        yield Note(
            source_setting.name,
            _(
                "The default of %(name)s is %(was)s in PostgreSQL %(source)s,"
                " but %(now)s in %(target)s."
            ),
            {
                "name": source_setting.name,
                "was": source_default or "''",
                "now": target_default or "''",
                "source": source,
                "target": target,
            },
        )
