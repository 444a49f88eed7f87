"""Doors that answer queries by parameters; each parameter must be known and have a value."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from runs.api.doors import Schema
from runs.api.formats import QueryFault


class QueryDoor(APIView):
    """One answer a query. An unknown, empty or doubled parameter is refused, as lists do it.

    `parameters` are those known, `repeatable` those that may come more than once.
    """

    schema = Schema()
    parameters: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the query parameters before anything is read."""
        super().initial(request, *args, **kwargs)
        faults = {}
        for name, values in request.query_params.lists():
            if fault := self._fault(name, values):
                faults[name] = [fault]
        if faults:
            raise QueryFault(faults)

    def _fault(self, name: str, values: list[str]) -> ErrorDetail | None:
        known = (*self.parameters, *self.repeatable, str(api_settings.URL_FORMAT_OVERRIDE))
        if name not in known:
            message = _("Unknown parameter; known are: %(known)s.") % {"known": ", ".join(known)}
            return ErrorDetail(message, "unknown_parameter")
        if len(values) > 1 and name not in self.repeatable:
            return ErrorDetail(_("Given more than once."), "repeated_parameter")
        if not all(value.strip() for value in values):
            return ErrorDetail(_("Has no value."), "empty_parameter")
        return None


def refuse(name: str, code: str, message: str) -> QueryFault:
    """The fault of one parameter, to be raised."""
    return QueryFault({name: [ErrorDetail(message, code)]})


def level(text: str) -> tuple[str, str]:
    """`clients=8` as factor and level. Raises ValidationError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        message = _("“%(text)s” must be a factor and its level, as in clients=8.")
        raise refuse("level", "not_a_level", message % {"text": text})
    return name, value


def percent(text: str | None, default: float) -> float:
    """A percentage from 0 to 1000. Raises ValidationError."""
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1000:
        raise refuse("effect", "out_of_range", _("A number of percent from 0 to 1000."))
    return value
