"""Projects and their people: members with their roles, and invitations by link."""

from typing import cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import Right
from runs.access.services import projects as project_service
from runs.access.views.logins import INVITATION
from runs.models import Invitation, Membership, Project
from runs.shared import pages
from runs.shared.errors import ServiceError


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
    is_public = forms.BooleanField(
        label=_("Everyone may read it"), required=False, initial=True
    )


@addresses.page("project-list", posted=Right.PROJECTS)
def project_list(request: HttpRequest) -> HttpResponse:
    """The projects that somebody may see; an administrator makes new ones."""
    # People are invited into it before anything of it is there.
    project_service.default()
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with pages.faults_of(form):
            project = project_service.create(**form.cleaned_data)
            return redirect("project-people", slug=project.slug)
    readable: QuerySet[Project] = projects.readable(request.user)
    rows = readable.annotate(people=Count("memberships")).order_by("name", "pk")
    return render(
        request, "access/projects/list.html", {"projects": rows, "form": form}
    )


@addresses.form("project-people", Right.PEOPLE)
@never_cache
def project_people(request: HttpRequest, slug: str) -> HttpResponse:
    """Members, open invitations, and the form of a new one, whose link is shown once."""
    project = _project(request, slug)
    form, link = InvitationForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        by = cast(User, request.user)
        invitation = project_service.invite(project=project, by=by, **form.cleaned_data)
        link = request.build_absolute_uri(
            reverse("invitation", args=[invitation.secret])
        )
        form = InvitationForm()
    open_ones = [
        invitation
        for invitation in project.invitations.select_related("invited_by")
        if invitation.is_open
    ]
    members = project.memberships.select_related("user").order_by("user__username")
    context = {
        "project": project,
        "members": members,
        "roles": Membership.Role.choices,
        "invitations": open_ones,
        "form": form,
        "link": link,
    }
    return render(request, "access/projects/people.html", context)


@addresses.action("project-role", Right.PEOPLE)
def project_role(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    """Give a member another role."""
    membership = get_object_or_404(
        Membership, project=_project(request, slug), pk=member_id
    )
    with pages.refusals(request):
        project_service.change_role(
            membership=membership, role=request.POST.get("role", "")
        )
        messages.success(request, _("The role was changed."))
    return redirect("project-people", slug=slug)


@addresses.action("project-remove", Right.PEOPLE)
def project_remove(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    """End a membership."""
    membership = get_object_or_404(
        Membership, project=_project(request, slug), pk=member_id
    )
    project_service.remove_member(membership=membership)
    messages.success(request, _("The membership has ended."))
    return redirect("project-people", slug=slug)


@addresses.action("project-take-back", Right.PEOPLE)
def project_take_back(
    request: HttpRequest, slug: str, invitation_id: int
) -> HttpResponse:
    """End an invitation."""
    invitation = get_object_or_404(
        Invitation, project=_project(request, slug), pk=invitation_id
    )
    project_service.take_back(invitation=invitation)
    messages.success(request, _("The invitation was revoked."))
    return redirect("project-people", slug=slug)


@addresses.page("invitation")
@never_cache
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Where the link of an invitation leads: to an account, or to the membership."""
    try:
        invitation = project_service.opened_invitation(secret=secret)
    except ServiceError as error:
        return render(
            request, "access/projects/invitation.html", {"error": error}, status=404
        )
    request.session[INVITATION] = secret
    return render(
        request, "access/projects/invitation.html", {"invitation": invitation}
    )


@addresses.action("invitation-accept", Right.OWN)
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
