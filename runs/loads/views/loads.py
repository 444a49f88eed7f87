"""Pages of loads: bring one, see what was read of it, measure it, and read the answer."""

from typing import cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.loads import sample
from runs.loads.selectors import loads as selectors
from runs.loads.selectors.answers import REASONS, LoadAnswer
from runs.loads.selectors.markdown import markdown
from runs.loads.services import dumps, loads, results, trials
from runs.loads.services.loads import Preview
from runs.loads.views.forms import LoadForm, MeasureForm, PartForm
from runs.models import Campaign, Load
from runs.shared import formats, pages
from runs.shared.errors import Refused, ServiceError
from runs.statements.load import LeftOut

# A page of a preview, and the names of its fields that are files.
MOST_SHOWN = 200
_FILES = {"statements": "statements_file", "sql": "sql_file"}


@addresses.page("load-list")
def load_list(request: HttpRequest) -> HttpResponse:
    """The loads of the reader's projects."""
    page = pages.page(selectors.listed(to=request.user), request.GET)
    return render(request, "loads/list.html", {"page": page, "rows": page.rows})


@addresses.form("load-new", Right.CONFIGURE)
def load_new(request: HttpRequest) -> HttpResponse:
    """Bring a load: only read, or kept. With `?sample` one to try is filled in."""
    user = cast(User, request.user)
    if request.method != "POST":
        initial: dict[str, object] = {}
        if "sample" in request.GET:
            initial = {
                "name": _("Sample load"),
                "statements": sample.STATEMENTS,
                "scale": sample.SCALE,
            }
        return _editor(request, LoadForm(initial=initial, user=user))
    form = LoadForm(request.POST, request.FILES, user=user)
    if not form.is_valid():
        return _editor(request, form)
    fields = form.cleaned_data
    try:
        if "check" in request.POST:
            return _editor(request, form, loads.read(form.brought()))
        load = loads.create(
            name=fields["name"],
            brought=form.brought(),
            project=fields["project"],
            by=user,
            days=fields["days"],
        )
    except Refused as refused:
        for fault in refused.faults:
            form.add_error(fault.pointer.lstrip("/"), fault.message)
    except ServiceError as error:
        pages.add_error(form, error)
    else:
        messages.success(request, _("The load is kept."))
        return redirect("load-detail", slug=load.slug)
    return _editor(request, form)


def _editor(
    request: HttpRequest, form: LoadForm, preview: Preview | None = None
) -> HttpResponse:
    context = {
        "form": form,
        "preview": preview,
        "units": preview.load.units[:MOST_SHOWN] if preview else (),
        "left_out": _reasoned(preview.load.left_out) if preview else (),
        "has_files": any(name in request.FILES for name in _FILES.values()),
    }
    return render(request, "loads/form.html", context)


def _reasoned(left_out: tuple[LeftOut, ...]) -> list[tuple[LeftOut, str]]:
    return [(row, str(REASONS[row.reason])) for row in left_out]


def _found(request: HttpRequest, slug: str) -> Load:
    return get_object_or_404(selectors.listed(to=request.user), slug=slug)


@addresses.page("load-detail")
def load_detail(request: HttpRequest, slug: str) -> HttpResponse:
    """What was read of a load, where it was measured, and the form that measures it."""
    return _detail(request, _found(request, slug), MeasureForm())


def _detail(
    request: HttpRequest,
    load: Load,
    form: MeasureForm,
    part_form: PartForm | None = None,
) -> HttpResponse:
    opened = results.opened(load)
    context = {
        "load": load,
        "units": opened.units[:MOST_SHOWN],
        "left_out": _reasoned(opened.left_out),
        "data": opened.data,
        "cold_seconds": opened.cold_seconds,
        "campaigns": list(selectors.campaigns_of(load)[: pages.MOST_CAMPAIGNS]),
        "form": form,
        "part_form": part_form or PartForm(),
        "part_bytes": dumps.PART_BYTES,
    }
    return render(request, "loads/detail.html", context)


@addresses.action("load-measure", Right.QUEUE)
def load_measure(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue a campaign of a load."""
    load = _found(request, slug)
    form = MeasureForm(request.POST)
    if form.is_valid():
        with pages.faults_of(form):
            campaign = loads.queue(
                load=load, asked=form.asked(), by=cast(User, request.user)
            )
            return redirect("load-answer", slug=load.slug, campaign=campaign.slug)
    return _detail(request, load, form)


@addresses.action("load-dump", Right.CONFIGURE)
def load_dump(request: HttpRequest, slug: str) -> HttpResponse:
    """Take a part of a load's dump: of the page's script, or all of it from its form."""
    load = _found(request, slug)
    form = PartForm(request.POST, request.FILES)
    is_kept = False
    if form.is_valid():
        fields = form.cleaned_data
        with pages.faults_of(form):
            is_kept = dumps.take(
                load=load,
                number=fields["number"] or 0,
                size=fields["size"] or len(fields["part"]),
                part=fields["part"],
            )
    if is_kept:
        messages.success(request, _("The dump was read, and is kept."))
    if request.headers.get("Accept") == "application/json":
        faults = [str(fault) for faults in form.errors.values() for fault in faults]
        return JsonResponse({"faults": faults}, status=400 if faults else 200)
    if form.errors:
        return _detail(request, load, MeasureForm(), form)
    return redirect("load-detail", slug=load.slug)


@addresses.action("load-delete", Right.CONFIGURE)
def load_delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Remove a load."""
    loads.remove(load=_found(request, slug))
    messages.success(
        request, _("The load is removed, and what was found of its statements.")
    )
    return redirect("load-list")


@addresses.page("load-answer")
def load_answer(request: HttpRequest, slug: str, campaign: str) -> HttpResponse:
    """What versions mean for the load, by one campaign."""
    load = _found(request, slug)
    measured = _campaign_of(load, campaign)
    answer = _answer(request, load, measured)
    context = {
        "load": load,
        "campaign": measured,
        "answer": answer,
        "left_out": _reasoned(answer.left_out) if answer else [],
    }
    return render(request, "loads/answer.html", context)


@addresses.action("load-try", Right.QUEUE)
def load_try(request: HttpRequest, slug: str, campaign: str) -> HttpResponse:
    """Try on a slower statement the settings to which its plan points."""
    load = _found(request, slug)
    measured = _campaign_of(load, campaign)
    sides = {name: request.POST.get(name, "") for name in ("base", "head")}
    answer = results.answer(load, measured, **sides)
    number = request.POST.get("statement", "")
    if answer is None or not (number.isdecimal() and len(number) < 10):
        raise Http404
    with pages.refusals(request):
        queued = trials.queue(
            load=load,
            measured=measured,
            answer=answer,
            statement=int(number),
            by=cast(User, request.user),
        )
        title = formats.translate_field(queued, "title")
        messages.success(request, _("Queued: %(title)s.") % {"title": title})
    return redirect(
        f"{reverse('load-answer', args=[slug, campaign])}?{urlencode(sides)}"
    )


@addresses.page("load-report")
def load_report(request: HttpRequest, slug: str, campaign: str) -> HttpResponse:
    """The same as a file of Markdown."""
    load = _found(request, slug)
    answer = _answer(request, load, _campaign_of(load, campaign))
    if answer is None:
        raise Http404
    return pages.file(
        markdown(answer).encode(), f"{load.slug}.md", "text/markdown; charset=utf-8"
    )


def _campaign_of(load: Load, campaign: str) -> Campaign:
    return get_object_or_404(selectors.campaigns_of(load), slug=campaign)


def _answer(request: HttpRequest, load: Load, campaign: Campaign) -> LoadAnswer | None:
    return results.answer(
        load,
        campaign,
        base=request.GET.get("base", ""),
        head=request.GET.get("head", ""),
    )
