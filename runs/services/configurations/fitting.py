"""A configuration on the versions that are to run with it: what each gets, and what is wrong."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from runs.models import Configuration, ConfigurationRevision, Installation
from runs.postgresql_settings import fitting, initdb_options
from runs.postgresql_settings.catalogue import MAJORS, UNRELEASED, known_major
from runs.postgresql_settings.findings import Finding
from runs.postgresql_settings.fitting import Fitted
from runs.services.configurations.contents import Content, content
from runs.services.errors import Fault
from runs.services.problems import Problem

NEWEST = next(major for major in reversed(MAJORS) if major not in UNRELEASED)


@dataclass(frozen=True)
class InstallationFit:
    """What one installation gets of a configuration."""

    installation: Installation
    fitted: Fitted


def fits(
    configuration: Configuration | ConfigurationRevision | None,
    installations: Iterable[Installation],
    *,
    memory_bytes: int | None = None,
) -> list[InstallationFit]:
    """What each of the installations gets, in their order."""
    wanted = content(configuration)
    return [
        InstallationFit(each, fitted(wanted, major_of(each), memory_bytes=memory_bytes))
        for each in installations
    ]


def fitted(wanted: Content, major: str, *, memory_bytes: int | None = None) -> Fitted:
    """What one version gets. Raises UnknownVersion."""
    return fitting.fit(
        wanted.settings,
        major,
        written_for=wanted.written_for,
        memory_bytes=memory_bytes,
        wal_segment_bytes=initdb_options.wal_segment_bytes(wanted.initdb_options),
    )


def major_of(installation: Installation) -> str:
    """The installation's major version, or the recorded one that is nearest to it."""
    found = known_major(installation.major)
    if found is not None:
        return found
    return MAJORS[0] if installation.version_num < 100000 else MAJORS[-1]


def problems(fits: Sequence[InstallationFit]) -> Iterator[Problem]:
    """Why servers of these versions would not start, each reason once for all versions."""
    for finding in fitting.merged_findings([each.fitted for each in fits]):
        if finding.severity == "error":
            message, remedy = words(finding)
            version = _("PostgreSQL %(versions)s: %(message)s") % {
                "versions": ", ".join(finding.majors),
                "message": message,
            }
            yield Problem(finding.code, version, remedy, "configuration")


def remarks(fits: Sequence[InstallationFit]) -> list[Finding]:
    """What is to be known before runs of these versions are compared."""
    all_fitted = [each.fitted for each in fits]
    found = fitting.merged_findings(all_fitted) + fitting.across(all_fitted)
    return [finding for finding in found if finding.severity == "warning"]


def option_problems(options: Iterable[str]) -> Iterator[Problem]:
    """initdb options that a configuration may not have."""
    for option in initdb_options.refused(options):
        known = ", ".join(initdb_options.OFFERED)
        message = _(initdb_options.REFUSED) % {"option": option[:100], "known": known}
        yield Problem("initdb_option_refused", message, _("Leave it out."), "configuration")


def faults(wanted: Content) -> list[Fault]:
    """Why the version that a content is written for (else the nearest) would not start with it."""
    if wanted.written_for and known_major(wanted.written_for) != wanted.written_for:
        message = _("There is no PostgreSQL %(version)s; known are: %(known)s.")
        told = {"version": wanted.written_for, "known": ", ".join(MAJORS)}
        return [Fault("/written_for", "version_unknown", message % told)]
    home = wanted.written_for or fitting.home(wanted.settings, NEWEST)
    found = [_fault(finding) for finding in fitted(wanted, home).errors]
    return found + [
        Fault("/initdb_options", each.code, each.message)
        for each in option_problems(wanted.initdb_options)
    ]


def words(finding: Finding) -> tuple[str, str]:
    """(message, remedy) of a finding in the reader's language."""
    remedy = _(finding.remedy) % finding.parameters if finding.remedy else ""
    return _(finding.message) % finding.parameters, remedy


def _fault(finding: Finding) -> Fault:
    return Fault(f"/settings/{finding.name}", finding.code, " ".join(words(finding)).strip())
