"""Tokens: the list, a new one, which is shown once, and revoking."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs.selectors.access import tokens as token_selectors
from runs.services.access import projects, tokens
from runs.services.access.tokens import NewToken
from runs.services.errors import ServiceError
from runs.web import notices
from runs.web.access.token_forms import TokenForm
from runs.web.uploads import downloads

# What docs/ci.md says, with the address of this BenchLab.
STEP = """\
- uses: example/benchlab/ci/github@v0.2.0
  with:
    url: %(url)s
    token: ${{ secrets.BENCHLAB_TOKEN }}
    campaign: nightly
    scenario: tpcb-like
    run: pgbench -n -c 2 -j 2 -T 60"""
SHELL = """\
read -rs BENCHLAB_TOKEN
export BENCHLAB_TOKEN BENCHLAB_URL=%(url)s"""


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def token_list(request: HttpRequest) -> HttpResponse:
    """The tokens of a person, and the form of a new one."""
    projects.default()  # creates the default project, so that one can be chosen
    user = cast(User, request.user)
    if request.method != "POST":
        return _page(request, TokenForm(user=user))
    form = TokenForm(request.POST, user=user)
    if form.is_valid():
        try:
            made = _create(form.cleaned_data, user)
        except ServiceError as error:
            notices.into_form(form, error)
        else:
            # No redirect: the text of the token is nowhere but in this answer.
            return _page(request, TokenForm(user=user), made=made)
    return _page(request, form)


@require_POST
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token of one's own."""
    token = get_object_or_404(token_selectors.listed(cast(User, request.user)), pk=token_id)
    tokens.revoke(token=token)
    message = _("The token “%(name)s” was revoked.") % {"name": token.name}
    messages.success(request, message)
    return redirect("token-list")


def _create(given: dict[str, Any], user: User) -> NewToken:
    return tokens.create(
        name=given["name"],
        scopes=given["scopes"],
        project=given["project"],
        expires_at=given["last_day"],
        by=user,
    )


def _page(request: HttpRequest, form: TokenForm, made: NewToken | None = None) -> HttpResponse:
    context = {
        "section": "tokens",
        "form": form,
        "made": made,
        "client_sha256": downloads.upload_client_sha256(),
        "step": STEP % {"url": request.build_absolute_uri("/").rstrip("/")},
        "shell": SHELL % {"url": request.build_absolute_uri("/").rstrip("/")},
        "tokens": token_selectors.listed(cast(User, request.user)),
    }
    return render(request, "tokens/list.html", context)
