"""The formats that an address answers in, by `format` in its query."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.settings import api_settings


class QueryFault(ValidationError):
    """The faults of query parameters, by their names, whatever the method."""


class KnownFormats(DefaultContentNegotiation):
    """A `format` that an address does not have is refused, not an address that is not there."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:  # noqa: A002 -- its name
        """The renderers of that format."""
        found = [each for each in renderers if each.format == format]
        if not found:
            known = ", ".join(dict.fromkeys(str(each.format) for each in renderers))
            message = _("This address has no such format; known are: %(known)s.")
            fault = ErrorDetail(message % {"known": known}, "unknown_format")
            raise QueryFault({str(api_settings.URL_FORMAT_OVERRIDE): [fault]})
        return found
