"""The description of the API (OpenAPI), which is the same until the next release."""

import zlib
from typing import Any

from django.http import HttpRequest
from django.utils.decorators import method_decorator
from django.utils.translation import get_language
from django.views.decorators.http import etag
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView

from runs.access import addresses
from runs.shared import caching


class KeptSchemaGenerator(SchemaGenerator):
    """Makes the description once a release and language: it takes a second."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        """Its content. Who asks makes no difference."""
        make: Any = super().get_schema
        return caching.answer("schema", "release", lambda: make(request, public))


def _tag(request: HttpRequest) -> str:
    variant = (
        request.headers.get("Accept", ""),
        request.GET.get("format", ""),
        get_language(),
    )
    return f'"{caching.code()}-{zlib.crc32(repr(variant).encode()):x}"'


@addresses.door(
    {
        "schema": addresses.reading(),
    }
)
@method_decorator(etag(_tag), name="dispatch")
class SchemaView(SpectacularAPIView):
    """The description, as YAML or JSON."""

    generator_class = KeptSchemaGenerator
