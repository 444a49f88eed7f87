"""The form of a new campaign as another campaign fills it in."""

from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from runs.models import Campaign
from runs.models.campaigns import Origin
from runs.selectors.access import projects
from runs.services.campaigns.drafts import Draft
from runs.services.schedules import schedules
from runs.web import pages


def asked(request: HttpRequest) -> Draft | None:
    """The design of the campaign that the address names as `again`; a refusal is shown."""
    shown = projects.visible(Campaign.objects.filter(origin=Origin.EXECUTED), to=request.user)
    campaign = shown.filter(slug=request.GET.get("again", "")).first()
    if campaign is None:
        return None
    with pages.refusals(request):
        return schedules.draft_of(campaign)
    return None


def with_place(given: QueryDict, draft: Draft) -> QueryDict:
    """What the address gives, and the scenario and servers of the design where it gives none."""
    found = given.copy()
    found.setlistdefault("scenario", [draft.scenario])
    found.setlistdefault("server", [draft.server.slug])
    found.setlistdefault("more_servers", [each.slug for each in draft.more_servers])
    return found


def initial(draft: Draft) -> dict[str, Any]:
    """The fields of the form."""
    several = len(draft.servers) > 1
    half = draft.wanted_half_width
    same = ("repeats", "most_repeats", "is_a_a", "priority", "most_attempts", "remeasures")
    return {
        **{name: getattr(draft, name) for name in (*same, "leaves_out_doubtful", "settings")},
        **draft.parameters,
        **vars(draft.treatment),
        **{name: ", ".join(map(str, levels)) for name, levels in draft.levels.items()},
        "title": _("%(title)s, again") % {"title": draft.title[:180]},
        "installations": list(
            dict.fromkeys(each.version if several else each.pk for each in draft.installations)
        ),
        "configuration": draft.configuration.pk if draft.configuration else None,
        "more_configurations": [each.slug for each in draft.more_configurations],
        "client": draft.client.pk if draft.client else None,
        "generators": [each.slug for each in draft.generators],
        "cluster_servers": [each.slug for each in draft.cluster_servers],
        "wanted_percent": None if half is None else round(half * 100, 6),
    }
