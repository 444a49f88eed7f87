"""By what lists of the audit trail can be filtered: once for page and API."""

import django_filters
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import permissions
from runs.shared.filters import Filters


class AuditFilters(Filters):
    """Which entries of the audit trail."""

    shown = ("actor", "action", "subject", "project")
    actor = django_filters.CharFilter(
        "actor", label=_("Who"), help_text="Name of who acted.", max_length=150
    )
    action = django_filters.CharFilter(
        "action",
        label=_("Action"),
        help_text="What was done, such as run_withdrawn.",
        max_length=60,
    )
    subject = django_filters.CharFilter(
        "subject",
        label=_("What"),
        help_text="What it was done to: run 12, server db1.",
        max_length=300,
    )
    project = django_filters.CharFilter(
        method=lambda rows, _name, value: permissions.audit_of_project(rows, value),
        label=_("Project"),
        help_text="Slug of the project.",
        max_length=80,
    )
