"""What the address of a new campaign asks for and its form cannot offer.

A link names levels: versions to measure, choices of a factor, a server. What is not there is said
in a sentence, and nothing else takes its place, or another question would be queued unseen.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.campaigns.services.designs import Design
from runs.campaigns.services.drafts import Draft
from runs.campaigns.views import treatment_fields
from runs.campaigns.views.forms import DIGITS, CampaignForm
from runs.models import Installation, Server
from runs.scenarios import common_factors, registry
from runs.scenarios.definition import AnyFactor, ChoiceFactor, Scenario
from runs.servers.services.tools import installed
from runs.shared.formats import listed

ALL = "all"
# Of an address, which may be anybody's: more are not repeated on the page.
MOST_LEVELS = 30
MOST_CHARACTERS = 40


@dataclass(frozen=True)
class Missing:
    """A sentence on what is not offered, what to do, and the page where it is done."""

    message: str
    remedy: str
    href: str = ""
    link: str = ""


def levels(query: QueryDict, name: str) -> list[str]:
    """The levels that an address gives for a factor: several times, or with commas between."""
    texts = (
        text.strip()
        for value in query.getlist(name)
        for text in re.split("[,、;]+", value)
    )
    return list(dict.fromkeys(text for text in texts if text))


def ticked(query: QueryDict, servers: Sequence[Server]) -> list[str] | None:
    """The installations to tick, or the versions on several servers; None if none was asked for.

    A form that is sent for another server has all of the first one ticked, whether somebody asked
    for them or not: where that server has none of them, its own are offered as by default.
    """
    chosen = treatment_fields.still_ticked(query, servers)
    if chosen:
        return chosen
    if levels(query, "versions"):
        return treatment_fields.expand_versions(query.get("versions", ""), servers)
    return [] if query.getlist("installations") and is_link(query) else None


def is_link(query: QueryDict) -> bool:
    """Whether an address was followed: what somebody sends has the proposed title, too."""
    return "proposed_title" not in query


def choices(query: QueryDict, form: CampaignForm) -> dict[str, list[str]]:
    """Of each factor with choices that the query has, those that the form offers.

    A form that is sent for another scenario has levels of the one before: those that are not
    offered leave the default.
    """
    factors = [
        factor
        for factor in (*form.definition.factors, *form.common)
        if isinstance(factor, ChoiceFactor) and levels(query, factor.name)
    ]
    offered = {
        factor.name: _offered(form, factor, levels(query, factor.name))
        for factor in factors
    }
    return {
        name: chosen for name, chosen in offered.items() if chosen or is_link(query)
    }


def missing(query: QueryDict, form: CampaignForm) -> tuple[Missing, ...]:
    """All that the address asks for and the form lacks.

    A form that is sent for other choices, and no link, has levels of the scenario before it.
    """
    sentences = [*_server(query, form.servers), *_versions(query, form.servers)]
    if is_link(query):
        sentences += _levels(query, form)
        sentences += _unknown_factors(query, form.definition)
    return tuple(sentences)


def nothing_to_compare(
    form: CampaignForm, draft: Draft, design: Design
) -> Missing | None:
    """Why no two levels are left of what the form was opened for; None if there are two."""
    majors = {installation.major for installation in draft.installations}
    version_levels = levels_of_text(form.versions_asked)
    needed = _elsewhere(draft)
    if len(majors) < 2 and len(version_levels) > 1:
        message = _(
            "Nothing is compared: of PostgreSQL %(wanted)s, only %(chosen)s is chosen."
        ) % {"wanted": listed(version_levels), "chosen": listed(sorted(majors))}
        return Missing(message, _("Install another of them, or tick another version."))
    if len(majors) < 2 and needed:
        message = _("Nothing is compared: everything is on one device.")
        return Missing(message, _("Needed: %(needed)s.") % {"needed": needed})
    if len(design.cells) < 2 and not draft.is_a_a:
        message = _(
            "Nothing is compared: there is one version, and one level of each factor."
        )
        remedy = _(
            "Tick another version, or give a factor a second level. It can be queued as it is, "
            "too."
        )
        return Missing(message, remedy)
    return None


def levels_of_text(text: str) -> list[str]:
    """The versions that a text with commas names, in its order; none of `all`."""
    versions = dict.fromkeys(version.strip() for version in text.split(","))
    return [
        version[:MOST_CHARACTERS] for version in versions if version not in ("", ALL)
    ][:MOST_LEVELS]


def _elsewhere(draft: Draft) -> str:
    """What the scenario's factor of several devices needs, where the draft has one device."""
    scenario = registry.get(draft.scenario)
    if draft.cluster_servers:
        return ""
    own_names = [factor.name for factor in scenario.factors]
    return next(
        (
            _(scenario.elsewhere[name])
            for name in own_names
            if name in scenario.elsewhere
        ),
        "",
    )


def _server(query: QueryDict, servers: Sequence[Server]) -> Iterator[Missing]:
    slug = query.get("server", "")
    if slug and slug != servers[0].slug:
        values = {"slug": slug[:MOST_CHARACTERS], "server": servers[0].name}
        yield Missing(
            _("There is no server “%(slug)s”; this form is for %(server)s.") % values,
            _("Choose the server below, or register it."),
            reverse("server-list"),
            _("Servers"),
        )


def _versions(query: QueryDict, servers: Sequence[Server]) -> Iterator[Missing]:
    present = [
        installation
        for server_installations in installed(servers).values()
        for installation in server_installations
    ]
    present_majors = {installation.major for installation in present}
    present_majors |= {installation.version for installation in present}
    absent = [
        version
        for version in [*levels_of_text(query.get("versions", "")), *_sent(query)]
        if version not in present_majors
    ]
    if not absent:
        return
    server = servers[0]
    values = {"versions": listed(absent), "server": server.name}
    message = ngettext(
        "PostgreSQL %(versions)s is not installed on %(server)s.",
        "PostgreSQL %(versions)s are not installed on %(server)s.",
        len(absent),
    )
    remedy = _(
        "Install them there and choose “Check again” on the server's page, or choose another "
        "server."
    )
    yield Missing(
        message % values,
        remedy,
        reverse("server-detail", args=[server.slug]) + "#installations",
        server.name,
    )


def _sent(query: QueryDict) -> list[str]:
    """The versions of the installations that were ticked, which may be another server's."""
    chosen = query.getlist("installations")[: treatment_fields.MOST_CHOSEN]
    keys = [int(text) for text in chosen if text.isdecimal() and len(text) < DIGITS]
    if not keys:
        return []
    of_installations = Installation.objects.filter(pk__in=keys).values_list(
        "version", flat=True
    )
    return list(dict.fromkeys(of_installations.order_by("version_num")))


def _levels(query: QueryDict, form: CampaignForm) -> Iterator[Missing]:
    scenario = form.definition
    for factor in (*scenario.factors, *form.common):
        levels_asked = (
            levels(query, factor.name) if isinstance(factor, ChoiceFactor) else []
        )
        offered = _offered(form, factor, levels_asked)
        absent = [
            level[:MOST_CHARACTERS] for level in levels_asked if level not in offered
        ]
        if absent:
            values = {
                "factor": _(factor.title),
                "levels": listed(absent[:MOST_LEVELS]),
                "scenario": _(scenario.title),
            }
            yield Missing(
                _("%(factor)s: “%(scenario)s” has no %(levels)s.") % values,
                _("Choose below what it has."),
            )


def _unknown_factors(query: QueryDict, scenario: Scenario) -> Iterator[Missing]:
    titles = _titles()
    factor_names = {
        factor.name for factor in (*scenario.factors, *common_factors.offered(scenario))
    }
    factor_names |= {parameter.name for parameter in scenario.parameters}
    for name in query:
        if name in titles and name not in factor_names and levels(query, name):
            values = {"factor": _(titles[name]), "scenario": _(scenario.title)}
            yield Missing(
                _("%(factor)s: “%(scenario)s” does not vary it.") % values,
                _("Choose another scenario, or what this one varies."),
            )


def _titles() -> Mapping[str, str]:
    return {
        factor.name: factor.title
        for scenario in registry.every()
        for factor in scenario.factors
    }


def _offered(form: CampaignForm, factor: AnyFactor, wanted: Sequence[str]) -> list[str]:
    if not wanted:
        return []
    offered_levels = {str(choice[0]) for choice in form.choice(factor.name).choices}
    return [level for level in wanted if level in offered_levels]
