"""Settings of two runs, cells, campaigns or configurations, side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.configurations.selectors import configurations
from runs.configurations.selectors.configurations import Applied, UnknownReference
from runs.configurations.services import fitted_configurations
from runs.configurations.services.check import OFFERED_MAJORS
from runs.configurations.services.contents import content
from runs.postgresql_settings import comparing
from runs.postgresql_settings.catalogue import position
from runs.postgresql_settings.comparing import Shown
from runs.postgresql_settings.fitting import home

Values = Mapping[str, Sequence[Shown]]


@addresses.page("settings-diff")
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
    if {"a", "b"} <= request.GET.keys() and not all(
        request.GET[side].strip() for side in sides
    ):
        faults.append(_("Write into both A and B what to compare, such as run:12."))
    shows_all = request.GET.get("all") == "1"
    context = {
        "given": {side: request.GET.get(side, "")[:200] for side in sides},
        "sides": sides,
        "faults": faults,
        "shows_all": shows_all,
        "configurations": configurations.listed(to=request.user).values_list(
            "slug", "name"
        ),
    }
    if sides["a"] is not None and sides["b"] is not None:
        context |= _compared(sides["a"], sides["b"], shows_all=shows_all)
    return render(request, "configurations/diff.html", context)


def _compared(a: Applied, b: Applied, *, shows_all: bool) -> dict[str, Any]:
    rows = list(comparing.rows(*_both(a, b)))
    differing = [row for row in rows if row.differs]
    return {
        "rows": rows if shows_all else differing,
        "differing": len(differing),
        "total": len(rows),
        "majors": (_majors(a, b), _majors(b, a)),
    }


def _both(a: Applied, b: Applied) -> tuple[Values, Values]:
    """The values of both; beside a configuration, of a server only what somebody has chosen."""
    of_a, of_b = _values(a, beside=b), _values(b, beside=a)
    if (a.configuration is None) == (b.configuration is None):
        return of_a, of_b
    if a.configuration is None:
        return _compare_with_configuration(of_a, of_b)
    of_b, of_a = _compare_with_configuration(of_b, of_a)
    return of_a, of_b


def _compare_with_configuration(
    printed: Values, written: Values
) -> tuple[Values, Values]:
    """What a server printed and what a configuration says, both of what either has chosen."""
    set_names = {
        name for name, shown_values in written.items() if not shown_values[0].is_default
    }
    chosen_values = comparing.chosen(printed, set_names)
    return chosen_values, {
        name: shown_values
        for name, shown_values in written.items()
        if name in chosen_values or name in set_names
    }


def _values(side: Applied, *, beside: Applied) -> Values:
    """What was applied; of a configuration what the other side's version makes of it."""
    if side.configuration is None:
        return side.values
    major = _major(side, beside)
    fitted = fitted_configurations.fitted(content(side.configuration), major)
    return {
        name: (shown_value,)
        for name, shown_value in comparing.complete_settings(
            fitted.settings, major
        ).items()
    }


def _majors(side: Applied, other_side: Applied) -> str:
    return ", ".join(side.majors) or _major(side, other_side)


def _major(side: Applied, other_side: Applied) -> str:
    """The version of a side: of a configuration the other side's, of two the newer of theirs."""
    if side.configuration is None:
        return side.major or ""
    if other_side.configuration is None and other_side.major:
        return other_side.major
    majors = [
        applied.major
        for applied in (side, other_side)
        if applied.configuration and applied.major
    ]
    newest = max(majors, key=position, default="")
    return newest or home(side.configuration.settings, OFFERED_MAJORS[-1])
