"""What can be taken along from campaigns and runs: reports, shell scripts, figures as files."""

import io
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import override

from runs.access import addresses
from runs.access.selectors import projects
from runs.campaigns.selectors import campaigns, cells_export
from runs.campaigns.selectors.report_parts import recorded_commands
from runs.cells.selectors import factor_names
from runs.documents.selectors import reports
from runs.loads.selectors.answers import LoadAnswer
from runs.loads.services import results
from runs.models import Campaign, Run
from runs.models.campaigns import Origin
from runs.reports import formats
from runs.reports.recorded_runs import RecordedRun
from runs.reports.shell_script import shell_script
from runs.shared import caching
from runs.shared.formats import language
from runs.shared.pages import attached, file, or_404

# Characters that are sent at a time.
BLOCK = 2**16


@addresses.page("campaign-report")
def campaign_report(request: HttpRequest, slug: str) -> HttpResponse:
    """The report as a file: `format` is html, md or rst, `lang` en or ja."""
    wanted_format = request.GET.get("format", "html")
    if wanted_format not in formats.FORMATS:
        known_formats = ", ".join(formats.FORMATS)
        message = _("There is no format %(format)s; known are %(known)s.")
        return HttpResponseBadRequest(
            message % {"format": wanted_format, "known": known_formats},
            content_type="text/plain; charset=utf-8",
        )
    found_campaign = _campaign(request, slug)
    key, report_format = found_campaign.pk, formats.FORMATS[wanted_format]
    into, today = language(request.GET.get("lang", "")), timezone.localdate()
    address = request.build_absolute_uri(f"/campaigns/{slug}/")

    def write(load_answer: LoadAnswer | None) -> bytes:
        # Read after the version: what is kept under it must not be older.
        campaign = _campaign(request, slug)
        report = reports.make_report(
            campaign,
            language=into,
            address=address,
            today=today,
            load_answer=load_answer,
        )
        return report_format.write(report)

    with override(into):
        load_answer = results.answer_of(found_campaign, to=request.user)
    if load_answer is not None:
        # It is for members alone, and kept nowhere.
        content = write(load_answer)
    else:
        question = ("report", key, wanted_format, into, address, str(today))
        version = caching.versions([key]).whole
        content = b64decode(
            caching.answer(question, version, lambda: b64encode(write(None)).decode())
        )
    return file(
        content,
        f"{slug}-{into}.{report_format.ending}",
        report_format.media_type,
    )


@addresses.page("campaign-script")
def campaign_script(request: HttpRequest, slug: str) -> HttpResponse:
    """All finished runs of a server (`server`, else the first) in the order of their execution."""
    campaign = _campaign(request, slug)
    servers = factor_names.server_names(campaign)
    chosen = request.GET.get("server") or next(iter(servers), "")
    if chosen and chosen not in servers:
        raise Http404(chosen)
    return _script(
        f"{campaign.slug}-{chosen}" if chosen else campaign.slug,
        campaign.title,
        recorded_commands.read_campaign(campaign, server=chosen),
        request.build_absolute_uri(f"/campaigns/{slug}/"),
    )


@addresses.page("run-script")
def run_script(request: HttpRequest, run_id: int) -> HttpResponse:
    """What one run executed."""
    runs = Run.objects.select_related("campaign", "cell", "cluster")
    run = get_object_or_404(projects.visible(runs, to=request.user), pk=run_id)
    return _script(
        f"run-{run.pk}",
        run.campaign.title,
        recorded_commands.read_run(run),
        request.build_absolute_uri(f"/runs/{run_id}/"),
    )


@addresses.page("campaign-csv")
def campaign_csv(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Each measurement of each run on a line; of a publication each figure with its provenance."""
    campaign = _campaign(request, slug)
    if campaign.origin == Origin.PUBLISHED:
        return redirect(f"{_printed_figures(campaign)}&format=csv")
    return _streamed(
        cells_export.as_csv(campaign), f"{slug}.csv", "text/csv; charset=utf-8"
    )


@addresses.page("campaign-json")
def campaign_json(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The campaign with its cells and measurements; of a publication its figures."""
    campaign = _campaign(request, slug)
    if campaign.origin == Origin.PUBLISHED:
        return redirect(f"{_printed_figures(campaign)}&page_size=1000")
    return _streamed(cells_export.as_json(campaign), f"{slug}.json", "application/json")


def _printed_figures(campaign: Campaign) -> str:
    """The address of a publication's figures with everything known about each."""
    table = campaign.published
    query = urlencode({"source": table.source.slug, "table": table.number})
    return f"{reverse('api:measurement-list')}?{query}"


def _campaign(request: HttpRequest, slug: str) -> Campaign:
    campaigns_found = campaigns.listed().select_related(
        "topology", "configuration", "published__source"
    )
    return get_object_or_404(
        projects.visible(campaigns_found, to=request.user), slug=slug
    )


def _script(
    name: str, title: str, runs: list[RecordedRun], address: str
) -> HttpResponse:
    with or_404(ValueError, _("Nothing has been executed here.")):
        text = shell_script(name, title, runs, address=address)
    return file(text.encode(), f"{name}.sh", "text/x-shellscript; charset=utf-8")


def _streamed(
    texts: Iterable[str], name: str, media_type: str
) -> StreamingHttpResponse:
    return attached(
        StreamingHttpResponse(_blocks(texts), content_type=media_type), name
    )


def _blocks(texts: Iterable[str]) -> Iterator[bytes]:
    """The texts in blocks: sending each line separately would cost more than making it."""
    waiting = io.StringIO()
    for text in texts:
        if waiting.write(text) and waiting.tell() >= BLOCK:
            yield waiting.getvalue().encode()
            waiting = io.StringIO()
    yield waiting.getvalue().encode()
