"""The page of the audit trail: filters, and pages from the newest entry back."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from runs.access import addresses
from runs.access.filters import AuditFilters
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.models import AuditEntry
from runs.shared import pages


@addresses.page("audit-list", Right.AUDIT)
@never_cache
def audit_list(request: HttpRequest) -> HttpResponse:
    """Who did what, of the projects whose trail the reader may read."""
    entries = permissions.readable_audit(to=cast(User, request.user))
    filters = AuditFilters(request.GET, entries, request=request)
    page = pages.page(filters.qs, request.GET)
    rows = [(entry, _changes(entry)) for entry in page.rows]
    return render(
        request,
        "access/audit/list.html",
        {"filters": filters, "page": page, "rows": rows},
    )


def _changes(entry: AuditEntry) -> list[tuple[str, Any, Any]]:
    before, after = entry.before or {}, entry.after or {}
    return [(name, before.get(name), after.get(name)) for name in {**before, **after}]
