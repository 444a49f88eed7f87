"""JSON bodies and formats: what cannot be read, stored or written again is refused."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NoReturn

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework import serializers, status
from rest_framework.exceptions import (
    APIException,
    ErrorDetail,
    ParseError,
    ValidationError,
)
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.settings import api_settings

from runs import foreign_json
from runs.foreign_json import TooDeepError
from runs.shared.api.upload_limits import MOST_BYTES
from runs.shared.errors import Fault, Refused


class TooLarge(APIException):
    """The body is larger than is taken, as it came or unpacked."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self) -> None:
        most = MOST_BYTES // 2**20
        detail = _("The body is larger than %(most)d MB. Send it in several uploads.")
        super().__init__(detail % {"most": most})


class StrictJSONParser(BaseParser):
    """Takes at most MOST_BYTES of JSON without NUL, NaN and numbers beyond a double."""

    media_type = "application/json"
    renderer_class = JSONRenderer

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The body. Raises ParseError, TooLarge."""
        try:
            content = read_bytes(stream, MOST_BYTES + 1)
        except RequestDataTooBig as error:
            raise TooLarge from error
        if len(content) > MOST_BYTES:
            raise TooLarge
        document = read_json(content, parse_float=_finite_float)
        # Only a text with the escape can have one: JSON does not take the character as it is.
        if b"\\u0000" in content and _has_nul(document):
            message = _(
                "Has a character that cannot be stored (NUL, or half of a surrogate pair)."
            )
            raise ParseError(message, "not_storable")
        return document


def read_bytes(body: IO[bytes] | HttpRequest, most: int) -> bytes:
    """At most so many bytes of a body. Raises ParseError where it breaks off."""
    try:
        return body.read(most)
    except OSError as error:
        raise ParseError(_("The body broke off."), "broken_off") from error


def read_json(content: bytes, *, parse_float: Callable[[str], float] = float) -> Any:
    """What the bytes say. Raises ParseError, and Refused for a name that is there twice."""
    if not content.strip():
        raise ParseError(_("The body is empty."), "not_json")
    try:
        return foreign_json.loads(
            content.decode(),
            parse_constant=_refuse_constant,
            parse_float=parse_float,
            object_pairs_hook=_once,
        )
    except _Doubled:
        doubled = foreign_json.loads(content.decode(), object_pairs_hook=_Pairs)
        faults = [
            Fault(pointer, "repeated_key", _("The name appears twice."))
            for pointer in _doubled(doubled, "")
        ]
        raise Refused("invalid", faults[:1000]) from None
    except UnicodeDecodeError as error:
        raise ParseError(_("The body is not UTF-8."), "not_utf_8") from error
    except TooDeepError as error:
        raise ParseError(_("The body is nested too deeply."), "not_json") from error
    except ValueError as error:
        message = _("The body is not JSON: %(error)s") % {"error": _reason(error)}
        raise ParseError(message, "not_json") from error


class _Doubled(Exception):
    """An object has a name twice: one of the values would be lost silently."""


class _Pairs(list[tuple[str, Any]]):
    """An object as the pairs that it was written as."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Doubled
    return members


def _doubled(value: Any, pointer_of_parent: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen_names = set()
        for name, inner in value:
            pointer = f"{pointer_of_parent}/{name[:100].replace('~', '~0').replace('/', '~1')}"
            if name in seen_names:
                yield pointer
            seen_names.add(name)
            yield from _doubled(inner, pointer)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _doubled(inner, f"{pointer_of_parent}/{index}")


def _reason(error: ValueError) -> str:
    """What is wrong, without advice that is for programmers in Python."""
    if "set_int_max_str_digits" in str(error):
        return _("a whole number has more than 4,300 digits")
    return str(error)


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not a number"
    raise ValueError(message)


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        message = f"{text[:40]} is beyond what a number can be"
        raise ValueError(message)
    return value


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(element) for pair in value.items() for element in pair)
    return isinstance(value, list) and any(_has_nul(element) for element in value)


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields before it looks at the others, and says which are known."""

    def to_internal_value(self, data: Any) -> Any:
        """The values; a field that is not known is refused."""
        if isinstance(data, Mapping) and (unknown := set(data) - set(self.fields)):
            known_names = ", ".join(self.fields)
            message = _("Unknown field; known are: %(known)s.") % {"known": known_names}
            fault = [ErrorDetail(message, "unknown_field")]
            raise ValidationError(
                {str(name): fault for name in sorted(map(str, unknown))}
            )
        return super().to_internal_value(data)


class QueryFault(ValidationError):
    """The faults of query parameters, by their names, whatever the method."""


class KnownFormats(DefaultContentNegotiation):
    """A `format` that an address does not have is refused, not an address that is not there."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:  # noqa: A002 -- its name
        """The renderers of that format."""
        of_format = [renderer for renderer in renderers if renderer.format == format]
        if not of_format:
            known_formats = ", ".join(
                dict.fromkeys(str(renderer.format) for renderer in renderers)
            )
            message = _("This address has no such format; known are: %(known)s.")
            fault = ErrorDetail(message % {"known": known_formats}, "unknown_format")
            raise QueryFault({str(api_settings.URL_FORMAT_OVERRIDE): [fault]})
        return of_format
