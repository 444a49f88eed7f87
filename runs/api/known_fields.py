"""Bodies whose every field is known: a misspelt one is refused, not passed over."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

CODE = "unknown_field"


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields before it looks at the others, and says which are known."""

    def to_internal_value(self, data: Any) -> Any:
        """The values; a field that is not known is refused."""
        if isinstance(data, Mapping) and (unknown := set(data) - set(self.fields)):
            known = ", ".join(self.fields)
            message = _("Unknown field; known are: %(known)s.") % {"known": known}
            fault = [ErrorDetail(message, CODE)]
            raise ValidationError({str(name): fault for name in sorted(map(str, unknown))})
        return super().to_internal_value(data)


def refuse_others(given: Iterable[str], known: Iterable[str]) -> None:
    """Once the known fields are right: raise ValidationError for each that is not one of them."""
    if unknown := set(given) - set(known):
        message = ErrorDetail(_("This field does not exist."), CODE)
        raise ValidationError({name: [message] for name in sorted(unknown)})
