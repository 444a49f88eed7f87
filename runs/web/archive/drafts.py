"""Publications in the browser: a draft, its preview, and its acceptance by a second person."""

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runs.models import PublicationDraft
from runs.published.errors import PublishedFileError
from runs.selectors.archive import gaps
from runs.services.archive import publications
from runs.services.errors import ServiceError
from runs.web import pages


class DraftForm(forms.Form):
    """The publication's name, and all of it as a data file."""

    slug = forms.SlugField(
        label=gettext_lazy("Name in addresses"),
        max_length=60,
        help_text=gettext_lazy("Such as wg1-2014; the file has the same slug."),
    )
    text = forms.CharField(
        label=gettext_lazy("Data file (YAML)"),
        max_length=publications.MOST_CHARACTERS,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 30, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy("Its form is described in docs/adding-a-source.md."),
    )


@require_safe
def archive_later(request: HttpRequest) -> HttpResponse:
    """What later reports of the series would add, and how they come into the archive."""
    context = {"section": "archive", "gaps": gaps.gaps(), "traces": gaps.traces()}
    return render(request, "archive/later.html", context)


@require_safe
def archive_drafts(request: HttpRequest) -> HttpResponse:
    """All drafts."""
    listed = PublicationDraft.objects.select_related("edited_by", "accepted_by").defer("text")
    return render(request, "archive/drafts.html", {"section": "archive", "drafts": list(listed)})


@require_http_methods(["GET", "HEAD", "POST"])
def archive_draft_new(request: HttpRequest) -> HttpResponse:
    """A new draft."""
    if request.method == "POST":
        return _saved(request, DraftForm(request.POST))
    return _page(request, DraftForm(initial={"slug": request.GET.get("slug", "")[:60]}))


@require_http_methods(["GET", "HEAD", "POST"])
def archive_draft(request: HttpRequest, slug: str) -> HttpResponse:
    """A draft with its preview; sent, it is kept."""
    draft = get_object_or_404(PublicationDraft, slug=slug)
    if request.method == "POST":
        return _saved(request, DraftForm({"slug": slug, "text": request.POST.get("text", "")}))
    form = DraftForm(initial={"slug": slug, "text": draft.text})
    return _page(request, form, draft=draft, **_preview(draft))


@require_POST
def archive_draft_accept(request: HttpRequest, slug: str) -> HttpResponse:
    """Take a draft into the archive."""
    draft = get_object_or_404(PublicationDraft, slug=slug)
    text = request.POST.get("text", "").replace("\r\n", "\n")
    try:
        publications.accept(draft=draft, text=text, by=cast(User, request.user))
    except ServiceError as error:
        pages.refused(request, error)
        return redirect("archive-draft", slug=slug)
    except PublishedFileError as error:
        messages.error(request, str(error))
        return redirect("archive-draft", slug=slug)
    messages.success(request, _("The publication is in the archive."))
    return redirect("archive-source", slug=slug)


def _saved(request: HttpRequest, form: DraftForm) -> HttpResponse:
    if form.is_valid():
        given = form.cleaned_data
        text = given["text"].replace("\r\n", "\n")
        try:
            draft = publications.save(slug=given["slug"], text=text, by=cast(User, request.user))
        except ServiceError as error:
            pages.into_form(form, error)
        else:
            messages.success(request, _("The draft is kept."))
            return redirect("archive-draft", slug=draft.slug)
    return _page(request, form)


def _preview(draft: PublicationDraft) -> dict[str, Any]:
    """The tables as the archive would take them, or the first fault with its line and remedy."""
    try:
        return {"preview": publications.preview(slug=draft.slug, text=draft.text)}
    except PublishedFileError as error:
        return {"fault": str(error)}


def _page(request: HttpRequest, form: DraftForm, **context: Any) -> HttpResponse:
    context |= {"section": "archive", "form": form}
    return render(request, "archive/draft.html", context)
