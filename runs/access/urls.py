"""Addresses of access."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from runs.access.api.access import AuditDoor
from runs.access.views import audit, people, tokens
from runs.shared.urls import page

pages = [
    page("projects/", people.project_list),
    page("projects/<slug:slug>/people/", people.project_people),
    page("projects/<slug:slug>/people/<int:member_id>/role/", people.project_role),
    page("projects/<slug:slug>/people/<int:member_id>/remove/", people.project_remove),
    page(
        "projects/<slug:slug>/invitations/<int:invitation_id>/take-back/",
        people.project_take_back,
    ),
    page("invitations/accept/", people.invitation_accept),
    page("invitations/<str:secret>/", people.invitation),
    page("audit/", audit.audit_list),
    page("tokens/", tokens.token_list),
    page("tokens/<int:token_id>/revoke/", tokens.token_revoke),
]
router = SimpleRouter(use_regex_path=False)
router.register("audit", AuditDoor, basename="audit")
api = [
    path("", include(router.urls)),
]
