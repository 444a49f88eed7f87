"""What the page of a configuration shows, ready for the template."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from runs.configurations.services import check, fitted_configurations
from runs.configurations.services.check import OFFERED_MAJORS
from runs.configurations.services.contents import content
from runs.configurations.services.fitted_configurations import InstallationFit
from runs.models import Configuration, ConfigurationRevision
from runs.postgresql_settings import conf_text, values
from runs.postgresql_settings.catalogue import setting
from runs.postgresql_settings.completion import versions
from runs.postgresql_settings.findings import Finding
from runs.postgresql_settings.fitting import Fitted, home
from runs.postgresql_settings.translation import translate


def own_major(configuration: Configuration) -> str:
    """The version that it is written for; if none is given, the newest that accepts it."""
    return configuration.written_for or home(configuration.settings, OFFERED_MAJORS[-1])


def meanings(configuration: Configuration) -> list[dict[str, Any]]:
    """Each setting with its facts in the configuration's own version."""
    major = own_major(configuration)
    return [
        _meaning(name, value, major)
        for name, value in sorted(configuration.settings.items())
    ]


def translated(configuration: Configuration, major: str) -> dict[str, Any]:
    """What a version gets: the settings, and what changed on the way."""
    checked = check.check(content(configuration), [major])
    fitted = checked.fitted[0]
    return {
        "major": major,
        "fitted": fitted,
        "changes": changes(fitted),
        "remarks": [remark for remark in checked.remarks if remark.severity != "info"],
        "notes": [_(note.message) % note.parameters for note in fitted.notes],
    }


def changes(fitted: Fitted) -> list[dict[str, str]]:
    """What reads otherwise in that version, or is not there, with the reason."""
    return recorded_changes(
        [vars(change) for change in (*fitted.changes, *fitted.left_out)]
    )


def recorded_changes(translated: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The same of a run, as its frozen plan keeps it."""
    return [
        {
            "before": f"{change['name_from']} = {change['value_from']}",
            "after": f"{change['name_to']} = {change['value_to']}"
            if change["name_to"]
            else "",
            "reason": _(change["reason"]) % change["parameters"],
        }
        for change in translated
    ]


def describe_installations(
    fits: Sequence[InstallationFit], remarks: Sequence[Finding]
) -> dict[str, Any]:
    """What installations get in other words than written, those alike together; and warnings."""
    groups: dict[str, dict[str, Any]] = {}
    for fit in fits:
        changes_found = changes(fit.fitted)
        if changes_found:
            group = groups.setdefault(
                repr(changes_found), {"versions": [], "changes": changes_found}
            )
            if (
                fit.installation.version not in group["versions"]
            ):  # once for several servers
                group["versions"].append(fit.installation.version)
    sentences = [fitted_configurations.words(finding) for finding in remarks]
    return {"translations": list(groups.values()), "remarks": sentences}


def file(configuration: Configuration, major: str) -> str:
    """One's own postgresql.conf for that version, with the changes listed at its top.

    It is translated, and nothing else: what BenchLab sets or leaves out for a run is only named.
    """
    translation = translate(configuration.settings, own_major(configuration), major)
    fitted = fitted_configurations.fitted(content(configuration), major)
    of_benchlab = sorted(
        name
        for name, value in translation.settings.items()
        if fitted.settings.get(name) != value
    )
    notes = []
    if of_benchlab:
        names = ", ".join(of_benchlab)
        notes = [
            _("A run of BenchLab leaves out or sets itself: %(names)s.")
            % {"names": names}
        ]
    written = [
        vars(change) for change in (*translation.changes, *translation.impossible)
    ]
    head = [*_head(configuration, recorded_changes(written)), *notes]
    return conf_text.write(translation.settings, major, header=head)


def file_of_run(configuration: Configuration, major: str) -> str:
    """What a run of BenchLab has with that version: no file for another server."""
    fitted = fitted_configurations.fitted(content(configuration), major)
    head = _head(configuration, changes(fitted))
    head.insert(
        1, _("For a run of BenchLab, which archives nothing: not for another server.")
    )
    return conf_text.write(fitted.settings, major, header=head)


def _head(
    configuration: Configuration, changes_found: Sequence[Mapping[str, str]]
) -> list[str]:
    options = " ".join(configuration.initdb_options)
    lines = [
        f"{change['before']} -> {change['after'] or '-'}: {change['reason']}"
        for change in changes_found
    ]
    return [configuration.name, *([f"initdb {options}"] if options else []), *lines]


def past(revisions: Sequence[ConfigurationRevision]) -> list[dict[str, Any]]:
    """Revisions, the newest first, each against the one before it."""
    older = [*map(_flat, revisions[1:]), None]
    return [
        {
            "revision": configuration_revision,
            "differences": differences(before, _flat(configuration_revision))
            if before
            else [],
        }
        for configuration_revision, before in zip(revisions, older, strict=True)
    ]


def _meaning(name: str, value: str, major: str) -> dict[str, Any]:
    facts = setting(name, major)
    return {
        "name": name,
        "value": value,
        "facts": facts,
        "default": values.default(facts) if facts else "",
        "allowed": values.allowed(facts) if facts else "",
        "versions": versions(name),
    }


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The settings that read otherwise after than before, by name."""
    return [
        {"name": name, "before": before.get(name, ""), "after": after.get(name, "")}
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _flat(revision: ConfigurationRevision) -> dict[str, str]:
    values = dict(revision.settings)
    if revision.initdb_options:
        values["initdb"] = " ".join(revision.initdb_options)
    if revision.written_for:
        values[_("written for")] = revision.written_for
    return values
