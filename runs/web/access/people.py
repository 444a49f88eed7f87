"""Projects and their people: members with their roles, and invitations by link."""

from collections.abc import Mapping
from typing import Any, cast

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.sites.requests import RequestSite
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from runs.models import Invitation, Membership, Project
from runs.selectors.access import projects
from runs.services.access import encryption
from runs.services.access import projects as project_service
from runs.services.errors import ServiceError
from runs.web import pages

# Of the session: the secret of the invitation that somebody follows.
INVITATION = "invitation"


def is_invited(request: HttpRequest) -> bool:
    """Whether somebody has come by an invitation that is good."""
    try:
        project_service.opened_invitation(secret=request.session.get(INVITATION, ""))
    except ServiceError:
        return False
    return True


# Failed logins of a name from everywhere, and then those from each address.
GUESSES = {"login_of_name": "100/h/key", "login_when_guessed": "1/5m/key"}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Only invited people can create an account, which makes them members.

    Failed logins lock their address, not the person: whoever knows the password gets in from
    another one. Where a name is guessed from many addresses, each has few attempts.
    """

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Of the name at this address."""
        return f"{self._name(request, credentials)} {ratelimit.get_ip(request)}"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse what exceeds the limits; a login that succeeds takes its attempt back."""
        super().pre_authenticate(request, **credentials)
        name = self._name(request, credentials)
        for action, key in (
            ("login_of_name", name),
            ("login_when_guessed", f"{name} {ratelimit.get_ip(request)}"),
        ):
            usage = ratelimit.consume(
                request, app="benchlab", action=action, config=GUESSES, key=key
            )
            if usage is not None:
                self._login_failed_rl_usage.usage += usage.usage
                return
        raise self.validation_error("too_many_login_attempts")

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """In the name of BenchLab, not of its host."""
        site = RequestSite(self.request)
        site.name = "BenchLab"
        super().send_mail(template_prefix, email, {"current_site": site, **context})

    def _name(self, request: HttpRequest, credentials: Mapping[str, Any]) -> str:
        return str(super()._get_login_attempts_cache_key(request, **credentials))

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """No open sign-up."""
        return is_invited(request)

    @transaction.atomic
    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Create account and membership together: an invitation already used creates neither."""
        saved: User = super().save_user(request, user, form, commit)
        project_service.accept(secret=request.session.pop(INVITATION, ""), user=saved)
        return saved


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """OpenID Connect: invited people, or everybody whom the provider lets in."""

    def is_open_for_signup(self, request: HttpRequest, _sociallogin: Any) -> bool:
        """As BENCHLAB_OIDC_SIGN_UP says; without a role in any project nobody may do much."""
        return settings.OPENID_SIGN_UP or is_invited(request)

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Create the account, and the membership of an invited person."""
        saved: User = super().save_user(request, sociallogin, form)
        if secret := request.session.pop(INVITATION, ""):
            project_service.accept(secret=secret, user=saved)
        return saved


class MFAAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of second factors are encrypted at rest, as SSH keys are."""

    def encrypt(self, text: str) -> str:
        """Under BENCHLAB_ENCRYPTION_KEY."""
        return encryption.encrypt(text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises InvalidToken where the key is another."""
        return encryption.decrypt(encrypted_text.encode())


class InvitationForm(forms.Form):
    """The role, and the person that it is for."""

    role = forms.ChoiceField(label=_("Role"), choices=Membership.Role.choices)
    note = forms.CharField(
        label=_("For whom"),
        max_length=200,
        required=False,
        help_text=_("A name that shows in the list who the link is for."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class ProjectForm(forms.Form):
    """A new project."""

    slug = forms.SlugField(label=_("Name in addresses"), max_length=80)
    name = forms.CharField(label=_("Name"), max_length=200)
    is_public = forms.BooleanField(label=_("Everyone may read it"), required=False, initial=True)


def project_list(request: HttpRequest) -> HttpResponse:
    """The projects that somebody may see; an administrator makes new ones."""
    # People are invited into it before anything of it is there.
    project_service.default()
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with pages.faults_of(form):
            made = project_service.create(**form.cleaned_data)
            return redirect("project-people", slug=made.slug)
    readable: QuerySet[Project] = projects.readable(request.user)
    rows = readable.annotate(people=Count("memberships")).order_by("name", "pk")
    return render(request, "projects/list.html", {"projects": rows, "form": form})


@never_cache
def project_people(request: HttpRequest, slug: str) -> HttpResponse:
    """Members, open invitations, and the form of a new one, whose link is shown once."""
    project = _project(request, slug)
    form, link = InvitationForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        by = cast(User, request.user)
        made = project_service.invite(project=project, by=by, **form.cleaned_data)
        link = request.build_absolute_uri(reverse("invitation", args=[made.secret]))
        form = InvitationForm()
    open_ones = [each for each in project.invitations.select_related("invited_by") if each.is_open]
    members = project.memberships.select_related("user").order_by("user__username")
    context = {
        "project": project,
        "members": members,
        "roles": Membership.Role.choices,
        "invitations": open_ones,
        "form": form,
        "link": link,
    }
    return render(request, "projects/people.html", context)


def project_role(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    """Give a member another role."""
    membership = get_object_or_404(Membership, project=_project(request, slug), pk=member_id)
    with pages.refusals(request):
        project_service.change_role(membership=membership, role=request.POST.get("role", ""))
        messages.success(request, _("The role was changed."))
    return redirect("project-people", slug=slug)


def project_remove(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    """End a membership."""
    membership = get_object_or_404(Membership, project=_project(request, slug), pk=member_id)
    project_service.remove_member(membership=membership)
    messages.success(request, _("The membership has ended."))
    return redirect("project-people", slug=slug)


def project_take_back(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    """End an invitation."""
    invitation = get_object_or_404(Invitation, project=_project(request, slug), pk=invitation_id)
    project_service.take_back(invitation=invitation)
    messages.success(request, _("The invitation was revoked."))
    return redirect("project-people", slug=slug)


@never_cache
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Where the link of an invitation leads: to an account, or to the membership."""
    try:
        found = project_service.opened_invitation(secret=secret)
    except ServiceError as error:
        return render(request, "projects/invitation.html", {"error": error}, status=404)
    request.session[INVITATION] = secret
    return render(request, "projects/invitation.html", {"invitation": found})


def invitation_accept(request: HttpRequest) -> HttpResponse:
    """Make the logged-in user a member."""
    secret = request.session.pop(INVITATION, "")
    with pages.refusals(request):
        joined = project_service.accept(secret=secret, user=cast(User, request.user))
        message = _("You are now a member of the project %(name)s.")
        messages.success(request, message % {"name": joined.project.name})
        return redirect("project-list")
    return redirect("home")


def _project(request: HttpRequest, slug: str) -> Project:
    return get_object_or_404(projects.readable(request.user), slug=slug)
