"""Fits a configuration to the versions that will run with it, and says what is wrong with it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made_by

from django.utils.translation import gettext as _

from runs.configurations.services.contents import Content
from runs.models import Configuration, Installation
from runs.postgresql_settings import fitting
from runs.postgresql_settings.catalogue import MAJORS, UNRELEASED, known_major
from runs.postgresql_settings.findings import Finding
from runs.postgresql_settings.fitting import Fitted
from runs.shared.errors import Fault, Problem

NEWEST = next(major for major in reversed(MAJORS) if major not in UNRELEASED)


@dataclass(frozen=True)
class InstallationFit:
    """What one installation gets from a configuration and the settings varied on top of it."""

    installation: Installation
    fitted: Fitted
    configuration: Configuration | None = None
    varied: Mapping[str, str] = made_by(default_factory=dict)


def fitted(
    content: Content,
    major: str,
    *,
    memory_bytes: int | None = None,
    varied: Mapping[str, str] | None = None,
) -> Fitted:
    """What one version gets. Raises UnknownVersion."""
    return fitting.fit(
        content.settings,
        major,
        varied=varied,
        written_for=content.written_for,
        memory_bytes=memory_bytes,
        wal_segment_bytes=fitting.wal_segment_bytes(content.initdb_options),
    )


def major_of(installation: Installation) -> str:
    """The installation's major version, or the nearest recorded one."""
    major = known_major(installation.major)
    if major is not None:
        return major
    return MAJORS[0] if installation.version_num < 100000 else MAJORS[-1]


def problems(fits: Sequence[InstallationFit]) -> Iterator[Problem]:
    """Why servers of these versions would not start, each reason once for all versions.

    A setting that a version does not have cannot be varied on it: its cells would not differ.
    """
    varied = {
        name.lower() for installation_fit in fits for name in installation_fit.varied
    }
    for finding in fitting.merged_findings(
        [installation_fit.fitted for installation_fit in fits]
    ):
        if finding.severity == "error":
            message, remedy = words(finding)
            version = _("PostgreSQL %(versions)s: %(message)s") % {
                "versions": ", ".join(finding.majors),
                "message": message,
            }
            is_varied = finding.name.lower() in varied
            field = f"settings/{finding.name}" if is_varied else "configuration"
            yield Problem(finding.code, version, remedy, field)
    yield from _not_varied(fits)


def _not_varied(fits: Sequence[InstallationFit]) -> Iterator[Problem]:
    losses = {
        (name, fit.fitted.major): _(lost.reason) % lost.parameters
        for fit in fits
        for lost in fit.fitted.left_out
        for name in fit.varied
        if name.lower() == lost.name_from.lower()
    }
    for (name, major), reason in losses.items():
        words = {"version": major, "name": name, "reason": reason}
        message = _("PostgreSQL %(version)s cannot vary %(name)s: %(reason)s") % words
        remedy = _("Leave out that setting or that version.")
        yield Problem("setting_not_varied", message, remedy, f"settings/{name}")


def remarks(fits: Sequence[InstallationFit]) -> list[Finding]:
    """What to know before runs of these versions are compared."""
    findings = list(
        fitting.merged_findings([installation_fit.fitted for installation_fit in fits])
    )
    of_alike: dict[str, list[Fitted]] = defaultdict(list)
    for installation_fit in fits:
        owner = (
            installation_fit.configuration.pk
            if installation_fit.configuration
            else None
        )
        of_alike[repr((owner, sorted(installation_fit.varied.items())))].append(
            installation_fit.fitted
        )
    for fitted_alike in of_alike.values():
        findings += [
            finding
            for finding in fitting.across(fitted_alike)
            if finding not in findings
        ]
    return [finding for finding in findings if finding.severity == "warning"]


def option_problems(options: Iterable[str]) -> Iterator[Problem]:
    """initdb options that a configuration must not have."""
    for option in fitting.refused(options):
        known_options = ", ".join(fitting.OFFERED)
        message = _(fitting.REFUSED) % {"option": option[:100], "known": known_options}
        yield Problem(
            "initdb_option_refused", message, _("Leave it out."), "configuration"
        )


def faults(content: Content) -> list[Fault]:
    """Why the version that a content is written for (or the nearest) would not start with it."""
    if content.written_for and known_major(content.written_for) != content.written_for:
        message = _("There is no PostgreSQL %(version)s; known are: %(known)s.")
        values = {"version": content.written_for, "known": ", ".join(MAJORS)}
        return [Fault("/written_for", "version_unknown", message % values)]
    home = content.written_for or fitting.home(content.settings, NEWEST)
    setting_faults = [
        Fault(
            f"/settings/{finding.name}", finding.code, " ".join(words(finding)).strip()
        )
        for finding in fitted(content, home).errors
    ]
    return setting_faults + [
        Fault("/initdb_options", problem.code, problem.message)
        for problem in option_problems(content.initdb_options)
    ]


def words(finding: Finding) -> tuple[str, str]:
    """(message, remedy) of a finding in the reader's language."""
    values = dict(finding.parameters)
    if len(finding.majors) > 1 and "major" in values:
        *other_majors, last_major = finding.majors
        values["major"] = _("%(others)s and %(last)s") % {
            "others": ", ".join(other_majors),
            "last": last_major,
        }
    remedy = _(finding.remedy) % values if finding.remedy else ""
    return _(finding.message) % values, remedy
