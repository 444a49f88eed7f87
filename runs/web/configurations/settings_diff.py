"""Settings of two runs, cells, campaigns or configurations, side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.models import Configuration
from runs.postgresql_settings import comparing
from runs.postgresql_settings.catalogue import position
from runs.postgresql_settings.comparing import Shown
from runs.postgresql_settings.fitting import home
from runs.selectors import configurations
from runs.selectors.configurations import Applied, UnknownReference
from runs.services.configurations import fitting as fitted_configurations
from runs.services.configurations.check import OFFERED_MAJORS
from runs.services.configurations.contents import content

Values = Mapping[str, Sequence[Shown]]


@require_safe
def settings_diff(request: HttpRequest) -> HttpResponse:
    """`?a=run:12&b=configuration:slug`: what differs, or with `all=1` everything."""
    sides: dict[str, Applied | None] = {"a": None, "b": None}
    faults = []
    for side in sides:
        if reference := request.GET.get(side, "").strip()[:200]:
            try:
                sides[side] = configurations.load_reference(reference, to=request.user)
            except UnknownReference:
                message = _("There is no %(reference)s here. Write %(kinds)s.")
                kinds = "run:12, cell:7, campaign:slug, configuration:slug"
                faults.append(message % {"reference": reference, "kinds": kinds})
    shows_all = request.GET.get("all") == "1"
    context = {
        "section": "configurations",
        "given": {side: request.GET.get(side, "")[:200] for side in sides},
        "sides": sides,
        "faults": faults,
        "shows_all": shows_all,
        "configurations": Configuration.objects.order_by("name").values_list("slug", "name"),
    }
    if sides["a"] is not None and sides["b"] is not None:
        context |= _compared(sides["a"], sides["b"], shows_all=shows_all)
    return render(request, "configurations/diff.html", context)


def _compared(a: Applied, b: Applied, *, shows_all: bool) -> dict[str, Any]:
    rows = list(comparing.rows(_values(a, beside=b), _values(b, beside=a)))
    differing = [row for row in rows if row.differs]
    return {
        "rows": rows if shows_all else differing,
        "differing": len(differing),
        "total": len(rows),
        "majors": (_major(a, b), _major(b, a)),
    }


def _values(side: Applied, *, beside: Applied) -> Values:
    """What was applied; of a configuration what the other side's version makes of it."""
    if side.configuration is None:
        return side.values
    major = _major(side, beside)
    fitted = fitted_configurations.fitted(content(side.configuration), major)
    return {name: (shown,) for name, shown in comparing.of_settings(fitted.settings, major).items()}


def _major(side: Applied, beside: Applied) -> str:
    """The version of a side: for a configuration that of the server on the other side.

    Two configurations are compared as the newer of their versions gets them.
    """
    if side.configuration is None:
        return side.major or ""
    if beside.configuration is None and beside.major:
        return beside.major
    told = [each.major for each in (side, beside) if each.configuration and each.major]
    newest = max(told, key=position, default="")
    return newest or home(side.configuration.settings, OFFERED_MAJORS[-1])
