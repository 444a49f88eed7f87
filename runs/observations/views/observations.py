"""Observations: the list, a new one with what it will take, its page, and its next edition."""

from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.archive.views.versions import figure
from runs.campaigns.services.campaign_limits import REPEATS
from runs.campaigns.views.campaigns import chosen_server
from runs.campaigns.views.forms import project_of
from runs.cells.selectors import noise, versions
from runs.charts.figure import Figure
from runs.models import Edition, Observation, Server
from runs.observations.selectors import anchors, answers, editions, publication
from runs.observations.selectors import report as reports
from runs.observations.selectors.editions import Part
from runs.observations.services import observations
from runs.observations.services.observations import Design, Plan
from runs.observations.views.form import CLIENTS, ObservationForm, filled, majors_of
from runs.reports import formats
from runs.scenarios import registry
from runs.servers.selectors import builds, fitness
from runs.shared import pages
from runs.shared.errors import ServiceError
from runs.shared.formats import language
from runs.shared.pages import file, or_404
from runs.shared.urls import path_if_there

MOST_SERVERS = 20


@addresses.page("observation-list")
def observation_list(request: HttpRequest) -> HttpResponse:
    """All observations, and their editions."""
    context = {"observations": editions.listed(to=request.user)}
    return render(request, "observations/list.html", context)


@addresses.form("observation-new", Right.QUEUE)
def observation_new(request: HttpRequest) -> HttpResponse:
    """The form with what it will take; posted, the first edition is queued at once.

    A form that was not sent yet is filled with proposals, and one that asks for them by `proposed`,
    as the first page's button does. Nothing else that is missing is made up.
    """
    is_sent = request.method == "POST"
    query = request.POST if is_sent else request.GET
    server, project = chosen_server(query), project_of(request)
    if server is None:
        return render(request, "observations/form.html")
    is_written = is_sent and "proposed" not in query
    data = query if is_written else filled(query, server)
    form = ObservationForm(data, server=server, project=project)
    is_wanted = is_sent and "estimate" not in query
    if is_wanted and form.is_valid() and (observation := _begun(request, form)):
        return redirect("observation-detail", slug=observation.slug)
    return render(request, "observations/form.html", {"form": form, **_previewed(form)})


@addresses.page("observation-detail")
def observation_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """An edition, by default the newest: what it says, the anchor, people's words."""
    observation = _observation(request, slug)
    all_editions = list(observation.editions.order_by("-pk"))
    edition = _chosen(request, all_editions)
    edition_parts = editions.parts(edition) if edition else []
    other_editions = editions.others(edition, to=request.user) if edition else []
    before = _compared_edition(request, other_editions)
    context = {
        "observation": observation,
        "editions": all_editions,
        "edition": edition,
        "parts": [_shown(part_of_edition) for part_of_edition in edition_parts],
        "again": editions.again(edition, before) if edition else [],
        "anchors": anchors.line(edition) if edition else [],
        "before": before,
        "others": [(_named(edition), edition) for edition in other_editions],
        "elsewhere": _elsewhere(observation),
        "installed": ", ".join(majors_of(observation.server)),
        "proposed_label": _proposed(all_editions),
        "languages": [(code, str(name)) for code, name in settings.LANGUAGES],
        "formats": list(formats.FORMATS),
        "texts": _texts(edition) if edition else [],
    }
    if permissions.may(request.user, Right.QUEUE, observation.project_id):
        context |= _preview(observations.plan_of(observation))
    return render(request, "observations/detail.html", context)


@addresses.action("observation-begin", Right.QUEUE)
def observation_begin(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue the next edition."""
    observation = _observation(request, slug)
    if "label" not in request.POST:
        messages.error(request, _("Nothing is queued: the edition has no name."))
        return redirect("observation-detail", slug=slug)
    with pages.refusals(request):
        observations.begin(
            observation=observation,
            label=request.POST.get("label", "")[:40],
            by=cast(User, request.user),
        )
        messages.success(request, _("The edition is queued."))
    return redirect("observation-detail", slug=slug)


@addresses.action("observation-write", Right.ANNOTATE)
def observation_write(request: HttpRequest, slug: str) -> HttpResponse:
    """Keep people's words on an edition."""
    observation = _observation(request, slug)
    label = request.POST.get("edition", "")
    edition = get_object_or_404(Edition, observation=observation, label=label)
    texts = ("purpose", "discussion", "conclusion", "history", "licence")
    written = {name: request.POST[name] for name in texts if name in request.POST}
    observations.write(edition=edition, **written)
    messages.success(request, _("The texts are saved."))
    return redirect(f"{request.path.removesuffix('write/')}?edition={label}")


@addresses.page("observation-report")
def observation_report(request: HttpRequest, slug: str) -> HttpResponse:
    """The report of an edition as a file: `format` is html, md or rst, `lang` en or ja."""
    edition = _edition(request, slug)
    report_format = formats.FORMATS.get(request.GET.get("format", "html"))
    if report_format is None:
        raise Http404
    is_asked = "against" in request.GET
    other_editions = editions.others(edition, to=request.user) if is_asked else ()
    report = reports.make_report(
        edition,
        draw=figure_of,
        language=language(request.GET.get("lang", "")),
        address=request.build_absolute_uri(reverse("observation-detail", args=[slug])),
        today=timezone.localdate(),
        before=_compared_edition(request, other_editions),
    )
    return file(
        report_format.write(report),
        f"{report.name}.{report_format.ending}",
        report_format.media_type,
    )


@addresses.page("observation-publication")
def observation_publication(request: HttpRequest, slug: str) -> HttpResponse:
    """The data file that makes the edition a source of an archive."""
    edition = _edition(request, slug)
    with or_404(ValueError, _("Nothing of this edition has finished.")):
        text = publication.write_document(
            edition,
            publisher=request.get_host(),
            today=timezone.localdate().isoformat(),
        )
    return file(text.encode(), f"{edition.published_as}.yaml", "application/yaml")


def edition_of(request: HttpRequest, slug: str) -> Edition | None:
    """The edition of the address, by default the newest; None before there is one."""
    observation = _observation(request, slug)
    return _chosen(request, list(observation.editions.order_by("-pk")))


def _chosen(request: HttpRequest, all_editions: Sequence[Edition]) -> Edition | None:
    wanted_label = request.GET.get("edition")
    named = (edition for edition in all_editions if edition.label == wanted_label)
    return next(named, next(iter(all_editions), None))


def _edition(request: HttpRequest, slug: str) -> Edition:
    editions_found = _observation(request, slug).editions.select_related(
        "observation__server"
    )
    return get_object_or_404(editions_found, label=request.GET.get("edition", ""))


def _named(edition: Edition) -> str:
    return f"{edition.observation.slug}~{edition.label}"


def _compared_edition(
    request: HttpRequest, other_editions: Sequence[Edition]
) -> Edition | None:
    """The edition that the address asks to compare with; None for the one before."""
    wanted_name = request.GET.get("against", "")
    edition = next(
        (edition for edition in other_editions if _named(edition) == wanted_name), None
    )
    if wanted_name and edition is None:
        raise Http404
    return edition


def _elsewhere(observation: Observation) -> list[tuple[Server, str]]:
    """Servers on which the same could be observed, with the address of the filled form."""
    first_design = observation.designs[0] if observation.designs else {}
    clients = first_design.get("levels", {}).get(CLIENTS, ())
    fields = {
        "scenarios": [design["scenario"] for design in observation.designs],
        "versions": observation.versions,
        "releases": observation.releases,
        "anchor": observation.anchor,
        "clients": ", ".join(map(str, clients)),
        "repeats": first_design.get("repeats", REPEATS),
        "configuration": observation.configuration.slug
        if observation.configuration
        else "",
        **first_design.get("parameters", {}),
    }
    servers = (
        Server.objects.exclude(base_dir="")
        .exclude(pk=observation.server_id)
        .order_by("name")
    )
    return [
        (server, urlencode({**fields, "server": server.slug}, doseq=True))
        for server in servers[:MOST_SERVERS]
    ]


def _observation(request: HttpRequest, slug: str) -> Observation:
    return get_object_or_404(editions.listed(to=request.user), slug=slug)


def _begun(request: HttpRequest, form: ObservationForm) -> Observation | None:
    user = cast(User, request.user)
    with pages.faults_of(form):
        observation = observations.create(
            plan=form.plan(),
            by=user,
            project=permissions.project_for(user, Right.QUEUE),
        )
        observations.begin(observation=observation, by=user)
        return observation
    return None


def _previewed(form: ObservationForm) -> dict[str, Any]:
    """What an edition would take and could show, or why it cannot be queued."""
    return _preview(form.plan()) if form.is_valid() else {}


def _preview(wanted_plan: Plan) -> dict[str, Any]:
    """What an edition of this plan would take, or why it cannot be queued."""
    try:
        plan = observations.planned(wanted_plan)
    except ServiceError as error:
        return {"problem": error}
    estimates_found = observations.estimates(plan)
    return {
        "unfit": fitness.unfit([plan.server]),
        "previews": [
            {
                "title": _(registry.get(design.scenario).title),
                "estimate": estimate,
                "repeats": design.repeats,
                "slice_seconds": design.slice_seconds,
                "can_show": _shows(plan, design),
            }
            for design, estimate in zip(plan.designs, estimates_found, strict=True)
        ],
        "remarks": list(
            filter(
                None,
                (
                    builds.unlike(observations.installations(plan)),
                    observations.left_out(plan),
                ),
            )
        ),
        "seconds": sum(estimate.seconds for estimate in estimates_found),
        "problems": [
            problem for estimate in estimates_found for problem in estimate.problems
        ],
    }


def _shows(plan: Plan, design: Design) -> float | None:
    """The smallest difference of two versions that the repeats show in 4 of 5 cases.

    None for slices, and where nothing of the server is known.
    """
    if design.slice_seconds is not None:
        return None
    floor = noise.find_server_noise(
        [plan.server], registry.get(design.scenario).primary_metric
    )
    rows = max(1, len(observations.installations(plan)) - 1) * len(
        design.levels[CLIENTS]
    )
    return floor.can_show(design.repeats, rows) if floor else None


def figure_of(part_of_edition: Part) -> Figure | None:
    """The line of a part; None where no two versions have finished."""
    ends = {end for pair in part_of_edition.line.pairs for end in pair.ends}
    return figure(part_of_edition.line, min(ends, key=versions.order)) if ends else None


def _shown(part_of_edition: Part) -> dict[str, Any]:
    why = path_if_there("compare-why")
    asks = [
        (
            _("Why %(b)s differs from %(a)s") % dict(zip("ab", pair.ends, strict=True)),
            f"{why}?a={pair.base.cell}&b={pair.head.cell}",
        )
        for pair in part_of_edition.line.pairs
        if pair.comparison.is_proven and why
    ]
    return {
        "part": part_of_edition,
        "figure": figure_of(part_of_edition),
        "answer": answers.answer_part(part_of_edition),
        "asks": asks,
    }


def _texts(edition: Edition) -> list[tuple[str, str, str]]:
    return [
        ("purpose", _("Purpose"), edition.purpose),
        ("discussion", _("Discussion"), edition.discussion),
        ("conclusion", _("Conclusion"), edition.conclusion),
        ("history", _("Revision history"), edition.history),
        ("licence", _("Licence"), edition.licence),
    ]


def _proposed(editions_so_far: list[Edition]) -> str:
    """A name for the next edition: the year, numbered from the second of a year on."""
    year, labels = (
        str(timezone.localdate().year),
        {edition.label for edition in editions_so_far},
    )
    return next(
        label
        for number in range(1, len(editions_so_far) + 2)
        for label in [year if number == 1 else f"{year}-{number}"]
        if label not in labels
    )
