"""Campaigns: the list, the form with its estimate, the live page, and cancelling."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import trigger_client_event

from runs import models
from runs.access import addresses
from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.archive.selectors.reproduction import (
    Asked,
    LostFactor,
    Reproduction,
    lost_factors,
    reproduction,
)
from runs.archive.views import page as published_page
from runs.campaigns.filters import CampaignFilters
from runs.campaigns.selectors import answers
from runs.campaigns.selectors import campaigns as campaign_selectors
from runs.campaigns.services import campaigns, designs, estimates, slicing
from runs.campaigns.services.designs import Design, DesignCell
from runs.campaigns.services.drafts import Draft
from runs.campaigns.views import annotations, asked, treatment_fields
from runs.campaigns.views import page as campaign_page
from runs.campaigns.views.forms import CampaignForm, project_of
from runs.campaigns.views.heat import matrix
from runs.campaigns.views.verdicts import written
from runs.cells.selectors import commit_pairs, noise, revisions
from runs.charts.arrangement import Drawing, Part, drawing
from runs.compare.selectors.judge.ratio_pairs import ratio_pairs
from runs.configurations.views import page as configuration_page
from runs.execution.plan import MAIN
from runs.histories.selectors import causes, histories
from runs.models import Campaign, Cell, Import, Server
from runs.models.campaigns import Origin
from runs.scenarios import arrangements, common_factors, registry
from runs.scenarios.definition import ChoiceFactor, FurtherCluster, Scenario
from runs.shared import caching, pages
from runs.shared.formats import translated
from runs.wording import gettext_noop

MOST_DRAWINGS = 6
# The roles of further clusters, as scenarios name them in the record of a run.
ROLES = (
    gettext_noop("standby"),
    gettext_noop("subscriber"),
    gettext_noop("foreign server"),
    gettext_noop("node"),
)
LINKS = {
    "sync": gettext_noop("synchronous"),
    "async": gettext_noop("asynchronous"),
    "quorum": gettext_noop("quorum"),
}


def arrangements_of(design: Design) -> list[tuple[str, Drawing]]:
    """A drawing for each arrangement of the design, with its title; none of a single cluster."""
    drawings: dict[object, tuple[str, Drawing]] = {}
    for cell in design.parts[0].cells if design.parts else ():
        clusters = design.scenario.arrangement(
            cell.installation.version_num, cell.levels
        )
        level = cell.levels.get(arrangements.NAME)
        key = (level, tuple((cluster.name, cluster.role) for cluster in clusters))
        if key not in drawings and len(drawings) < MOST_DRAWINGS:
            drawings[key] = (_title(level), drawing(_parts(design, cell, clusters)))
    is_plain = all(len(drawn.boxes) <= 2 for _name, drawn in drawings.values())
    return [] if is_plain and not design.generators else list(drawings.values())


def _title(level: Any) -> str:
    title = arrangements.FACTOR.choices.get(level)
    return _(title) if title else ""


def _parts(
    design: Design, cell: DesignCell, clusters: tuple[FurtherCluster, ...]
) -> list[Part]:
    own_name = design.parts[0].server.name
    loads = [generator.server.name for generator in design.generators] or [own_name]
    components = [Part("load", name, "pgbench", _("load")) for name in loads]
    if cell.levels.get(arrangements.NAME) == arrangements.POOLED:
        machine = next(
            (
                cluster_machine.server.name
                for cluster_machine in design.cluster_machines
            ),
            own_name,
        )
        components.append(Part("pool", machine, "PgBouncer", _("connection pool")))
    version = f"PostgreSQL {cell.installation.version}"
    components.append(
        Part("database", own_name, MAIN if clusters else version, _("database"))
    )
    modes = _modes(cell.levels)
    for position, cluster in enumerate(clusters):
        machines = design.cluster_machines
        machine = (
            machines[position % len(machines)].server.name if machines else own_name
        )
        components.append(
            Part(
                "further",
                machine,
                cluster.name,
                _(cluster.role),
                _(modes.get(position, "")) or "",
            )
        )
    return components


def _modes(levels: Mapping[str, Any]) -> dict[int, str]:
    """How each standby follows, by its place; of a scenario's own by its numbers of them."""
    level = levels.get(arrangements.NAME)
    if level in arrangements.MODES:
        return {
            position: LINKS[mode]
            for position, mode in enumerate(arrangements.MODES[str(level)])
        }
    if "sync_standbys" not in levels:
        return {}
    number = int(levels["sync_standbys"])
    mode = LINKS["quorum" if levels.get("synchronous_by") == "majority" else "sync"]
    return {
        position: mode if position < number else LINKS["async"]
        for position in range(16)
    }


PAGE_SIZE = 25
MOST_CAUSES = 20
# What stays as typed when another scenario or server is chosen.
KEPT = (
    "wanted_percent",
    "most_repeats",
    "is_a_a",
    "priority",
    "most_attempts",
    "configuration",
    "settings",
    *treatment_fields.NAMES,
)


@addresses.page("campaign-list")
def campaign_list(request: HttpRequest) -> HttpResponse:
    """Campaigns that are not published, the newest first; or those of one origin."""
    origin = request.GET.get("origin", "")
    chosen = origin if origin in Origin.values else None
    campaigns_chosen = (
        campaign_selectors.listed() if chosen else campaign_selectors.unpublished()
    )
    filters = CampaignFilters(request.GET, campaigns_chosen, request=request)
    page = pages.page(filters.qs, request.GET, size=PAGE_SIZE, to=request.user)
    context = {
        "origin": chosen,
        "origins": Origin.choices,
        "filters": filters,
        "page": page,
        "campaigns": answers.listed_campaigns(page.rows),
    }
    return render(request, "campaigns/list.html", context)


@addresses.form("campaign-new", Right.QUEUE)
def campaign_new(request: HttpRequest) -> HttpResponse:
    """The form; a choice of scenario or server brings the fields that follow from it."""
    query: QueryDict = request.POST if request.method == "POST" else request.GET
    again = _again(request) if request.method != "POST" else None
    query = _complete_query(query, again) if again else query
    servers = chosen_servers(query)
    if not servers:
        return render(request, "campaigns/form.html")
    scenario = _scenario(query)
    if request.method != "POST":
        reproduced = _reproduced(query, servers)
        if reproduced:
            scenario = reproduced.choice.scenario
        # A published design is scaled again for another server; other fields stay as typed.
        initial = {
            **(_initial(again) if again else {}),
            **_kept(query, scenario, servers),
            **(reproduced.initial if reproduced else {}),
        }
        form = CampaignForm(
            scenario=scenario,
            servers=servers,
            project=project_of(request),
            initial=initial,
        )
        if reproduced is None:
            form.initial.update(asked.choices(query, form))
        proposed = form.initial["title"]
        form.initial["title"] = _own_title(query) or proposed
        if again is None and reproduced is None and "slice_seconds" not in query:
            form.propose_slices()
        page = _form_page(
            request,
            form,
            reproduced=reproduced,
            proposed_title=proposed,
            unknown_scenario=_unknown_scenario(query),
            missing=asked.missing(query, form),
        )
        # After htmx has requested other choices, it requests their estimate.
        return trigger_client_event(page, "choices", after="settle")
    form = form_of(request, query, servers)
    if form.is_valid():
        with pages.faults_of(form):
            campaign = _queue(form.draft(), cast(User, request.user))
            return redirect("campaign-detail", slug=campaign.slug)
    return _form_page(request, form, proposed_title=query.get("proposed_title", ""))


@addresses.page("campaign-estimate", Right.QUEUE)
def campaign_estimate(request: HttpRequest) -> HttpResponse:
    """The campaign's estimate and problems, while the form is filled in."""
    servers = chosen_servers(request.GET)
    if not servers:
        return HttpResponse(status=204)
    form = form_of(request, request.GET, servers)
    return render(request, "campaigns/form.html#estimate", _estimated(form))


def form_of(
    request: HttpRequest, query: QueryDict, servers: Sequence[Server]
) -> CampaignForm:
    """The form as it was sent, for these servers."""
    project = project_of(request)
    return CampaignForm(
        query, scenario=_scenario(query), servers=servers, project=project
    )


@addresses.page("campaign-detail")
@vary_on_headers("HX-Request")
def campaign_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """The page, or its live part when htmx asks."""
    all_campaigns = campaign_selectors.listed().select_related(
        "topology", "published__source", "ablation"
    )
    campaign = get_object_or_404(
        projects.visible(all_campaigns, to=request.user), slug=slug
    )
    if hasattr(campaign, "published"):
        context = {"section": "archive", **published_page.context(request, campaign)}
        context |= annotations.context(request, campaign)
        return render(request, "campaigns/published.html", context)
    standing = campaign_page.standing(campaign)
    versions = campaign_page.versions_of(campaign)
    stamp = campaign_page.stamp(
        campaign, standing, request.GET, versions, reader=request.user
    )
    is_poll = getattr(request, "htmx", False)
    if stamp and is_poll and request.headers.get(pages.STAMP) == stamp:
        return HttpResponse(status=204)
    context = campaign_page.live(campaign, standing, request.GET, versions)
    # Verdicts that control makes change no version: without a stamp the next poll is answered.
    context["stamp"] = "" if context["shown"]["awaits_verdicts"] else stamp
    if is_poll:
        return render(request, "campaigns/_live.html", context)
    context |= {
        "ablation": getattr(campaign, "ablation", None),
        "measured_load": campaign_selectors.find_measured_load(
            campaign, to=request.user
        ),
        "conditions": campaign_page.conditions(campaign, versions),
        "beside": campaign_page.side_by_side(campaign, versions),
        **annotations.context(request, campaign, versions),
    }
    if campaign.origin == Origin.IMPORTED:
        context["imports"] = Import.objects.filter(
            pk__in=campaign.runs.values("imported")
        )
    if campaign.origin == Origin.UPLOADED:
        # Its data have dates of their own, and never that of the upload.
        context["dates"] = answers.dates_of([campaign]).get(campaign.pk)
        context["compare_query"] = caching.answer(
            ("compared commits", campaign.pk),
            versions.whole,
            lambda: _compared_commits(campaign),
        )
        context["found"] = caching.html(
            ("found", campaign.pk), versions.whole, lambda: _found_in(campaign)
        )
    return render(request, "campaigns/detail.html", context)


def _compared_commits(campaign: Campaign) -> str:
    """The query that compares the commits around its newest change, else the newest two.

    Empty where there are no two: its newest commit alone has nothing to be compared with.
    """
    changes = histories.newest_standing([campaign], 1)
    head = changes[0].cell.revision if changes else None
    head = head or revisions.newest(campaign)
    commit_pair = commit_pairs.around(campaign, head) if head is not None else None
    return commit_pair.query if commit_pair is not None else ""


def _found_in(campaign: Campaign) -> SafeString:
    """What its histories say, above all a regression."""
    changes = histories.newest_standing([campaign], answers.MOST_CHANGES)
    every_cause = causes.sort_by_interest(
        causes.find_causes(changes, by_decision=False)
    )
    losses = [cause for cause in every_cause if cause.first.verdict == "slower"]
    context = {
        "campaign": campaign,
        "answer": answers.read_known_answers([campaign]).get(campaign.pk),
        "regressions": losses[:MOST_CAUSES],
    }
    return written("campaigns/_kept.html#found", context)


def _queue(draft: Draft, user: User) -> Campaign:
    project = permissions.project_for(user, Right.QUEUE)
    if draft.priority:
        permissions.require(user, Right.PRIORITISE, project)
    return campaigns.create(draft=draft, by=user, project=project)


def _form_page(
    request: HttpRequest,
    form: CampaignForm,
    *,
    proposed_title: str,
    reproduced: Reproduction | None = None,
    unknown_scenario: str = "",
    missing: tuple[asked.Missing, ...] = (),
) -> HttpResponse:
    estimated = _estimated(form if form.is_bound else form.untouched())
    context = {
        "form": form,
        "proposed_title": proposed_title,
        # What somebody may be typing is not replaced.
        "keeps_title": getattr(request, "htmx", False) and _own_title(request.GET),
        "reproduced": reproduced,
        "unknown_scenario": unknown_scenario,
        "missing": missing,
        **estimated,
    }
    if reproduced is not None:
        context["lost_factors"] = reproduced.lost_factors
    return render(request, "campaigns/form.html", context)


def _own_title(query: QueryDict) -> str:
    """The title that somebody typed; empty while it is the one that was proposed."""
    title = query.get("title", "").strip()
    return "" if title == query.get("proposed_title", "") else title


def _estimated(form: CampaignForm) -> dict[str, Any]:
    """The estimate, or the form's own complaints while there is nothing to estimate."""
    if not form.is_valid():
        faulty = [form[name] for name in form.errors if name in form.fields]
        return {"estimate": None, "complaints": _complaints(form), "faulty": faulty}
    draft = form.draft()
    design = designs.resolve(draft)
    estimate = estimates.estimate(design)
    fitted = configuration_page.describe_installations(estimate.fits, estimate.remarks)
    floor = noise.find_server_noise(
        draft.servers, registry.get(draft.scenario).primary_metric
    )
    rows = _compared_rows(design)
    return {
        "estimate": estimate,
        "complaints": [],
        "draft": draft,
        "can_show": floor.can_show(draft.repeats, rows) if floor else None,
        "expected": slicing.expected(draft),
        "compared_rows": rows,
        "disk_bytes": max(
            (design.needed_bytes(server_part) or 0 for server_part in design.parts),
            default=0,
        ),
        "matrix": matrix(design),
        "arrangements": arrangements_of(design),
        "lost_factors": _lost_factors(draft),
        "not_compared": asked.nothing_to_compare(form, draft, design),
        **fitted,
    }


def _lost_factors(draft: Draft) -> tuple[LostFactor, ...]:
    """What of the question that a design reproduces it does not ask. Two queries, or none."""
    if not draft.reproduces:
        return ()
    published = (
        Campaign.objects.filter(slug=draft.reproduces, published__isnull=False)
        .select_related("published")
        .first()
    )
    if published is None:
        return ()
    of_draft = Asked(
        registry.get(draft.scenario),
        draft.levels,
        draft.installations,
        draft.servers,
        has_further=bool(draft.cluster_servers),
    )
    return lost_factors(published, of_draft)


def _compared_rows(design: Design) -> int:
    """How many rows the table of verdicts will have: the more, the stricter is each of them."""
    cells = [
        Cell(
            levels=dict(cell.levels),
            installation=cell.installation,
            version=cell.installation.version,
        )
        for cell in design.cells
    ]
    return max(1, len(ratio_pairs(cells)))


def _complaints(form: CampaignForm) -> list[str]:
    return [
        f"{form.fields[name].label}: {error}" if name in form.fields else str(error)
        for name, errors in form.errors.items()
        for error in errors
    ]


def chosen_servers(query: QueryDict) -> list[Server]:
    """The chosen server, and the further ones. None where there is no server."""
    first_server = chosen_server(query)
    if first_server is None:
        return []
    more_servers = (
        targets()
        .filter(slug__in=query.getlist("more_servers"))
        .exclude(pk=first_server.pk)
    )
    return [first_server, *more_servers.order_by("name", "pk")]


def chosen_server(query: QueryDict) -> Server | None:
    """The chosen server; without a choice the first ready one, else the first."""
    return (
        targets().filter(slug=query.get("server", "")).first()
        or targets().filter(state=Server.State.READY).first()
        or targets().first()
    )


def targets() -> QuerySet[Server]:
    """The servers that runs are executed on; the others are only hops."""
    return Server.objects.exclude(base_dir="").select_related("hardware", "environment")


def _scenario(query: Mapping[str, Any]) -> Scenario:
    """The chosen scenario; without a choice the first. An unknown one is refused by the form."""
    try:
        return registry.get(str(query.get("scenario", "")))
    except KeyError:
        return registry.every()[0]


def _unknown_scenario(query: Mapping[str, Any]) -> str:
    """The title of the scenario that the address names and no campaign can choose; else empty."""
    slug = str(query.get("scenario", ""))
    if not slug or any(scenario.slug == slug for scenario in registry.runnable()):
        return ""
    theme = models.Scenario.objects.filter(slug=slug).first()
    return translated(theme.title) if theme else slug


def _reproduced(query: QueryDict, servers: Sequence[Server]) -> Reproduction | None:
    """The published design that the address names, scaled to the servers."""
    campaign = Campaign.objects.filter(
        slug=query.get("from", ""), published__isnull=False
    ).first()
    is_quick = query.get("quick", "") == "true"
    reproduced = (
        reproduction(campaign, servers, is_quick=is_quick) if campaign else None
    )
    wants_other = (
        reproduced
        and query.get("scenario", reproduced.choice.scenario.slug)
        != reproduced.choice.scenario.slug
    )
    return None if wants_other else reproduced


def _kept(
    query: QueryDict, scenario: Scenario, servers: Sequence[Server]
) -> dict[str, Any]:
    """What was typed already and still has its place."""
    every = (*scenario.factors, *common_factors.offered(scenario))
    # Boxes to tick are compared with what the form offers.
    factors = [factor.name for factor in every if not isinstance(factor, ChoiceFactor)]
    parameters = [parameter.name for parameter in scenario.parameters]
    names = [
        "repeats",
        "slice_seconds",
        "seed",
        "client",
        "versions",
        *KEPT,
        *factors,
        *parameters,
    ]
    fields: dict[str, Any] = {name: query[name] for name in names if query.get(name)}
    ticked = asked.ticked(query, servers)
    fields |= {} if ticked is None else {"installations": ticked}
    more_configurations = query.getlist("more_configurations")
    fields |= (
        {"more_configurations": more_configurations} if more_configurations else {}
    )
    return fields


def _again(request: HttpRequest) -> Draft | None:
    """The design of the campaign that the address names as `again`; a refusal is shown."""
    visible_campaigns = projects.visible(
        Campaign.objects.filter(origin=Origin.EXECUTED), to=request.user
    )
    campaign = visible_campaigns.filter(slug=request.GET.get("again", "")).first()
    if campaign is None:
        return None
    with pages.refusals(request):
        return Draft.of_campaign(campaign).installed_now()
    return None


def _complete_query(query: QueryDict, draft: Draft) -> QueryDict:
    """What the address gives, and the scenario and servers of the design where it gives none."""
    completed = query.copy()
    completed.setlistdefault("scenario", [draft.scenario])
    completed.setlistdefault("server", [draft.server.slug])
    completed.setlistdefault(
        "more_servers", [server.slug for server in draft.more_servers]
    )
    return completed


MORE_OF_FORM = ("remeasures", "leaves_out_doubtful", "settings")


def _initial(draft: Draft) -> dict[str, Any]:
    """The fields of the form."""
    several = len(draft.servers) > 1
    half = draft.wanted_half_width
    same = (
        "repeats",
        "most_repeats",
        "slice_seconds",
        "is_a_a",
        "priority",
        "most_attempts",
        "remeasures",
    )
    return {
        **{name: getattr(draft, name) for name in (*same, *MORE_OF_FORM)},
        **draft.parameters,
        **vars(draft.treatment),
        **{name: ", ".join(map(str, levels)) for name, levels in draft.levels.items()},
        "title": _("%(title)s, again") % {"title": draft.title[:180]},
        "installations": list(
            dict.fromkeys(
                installation.version if several else installation.pk
                for installation in draft.installations
            )
        ),
        "configuration": draft.configuration.pk if draft.configuration else None,
        "more_configurations": [
            configuration.slug for configuration in draft.more_configurations
        ],
        "client": draft.client.pk if draft.client else None,
        "generators": [generator.slug for generator in draft.generators],
        "cluster_servers": [server.slug for server in draft.cluster_servers],
        "wanted_percent": None if half is None else round(half * 100, 6),
    }
