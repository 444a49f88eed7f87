"""Configurations: a list, one, a new one, and the check of settings for versions."""

from typing import Any

import django_filters
from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api.configurations.fields import (
    CheckedSerializer,
    CheckSerializer,
    ConfigurationSerializer,
    NewConfigurationSerializer,
)
from runs.api.doors import ReadOnlyDoor, Schema
from runs.models import Configuration
from runs.services.configurations import check as configuration_check
from runs.services.configurations import configurations


class ConfigurationFilters(django_filters.FilterSet):  # type: ignore[misc]
    """Which configurations."""

    origin = django_filters.ChoiceFilter(choices=Configuration.Origin.choices)
    setting = django_filters.CharFilter(
        "settings", lookup_expr="has_key", label="Name of a setting that they contain."
    )


class ConfigurationSchema(Schema):
    """Adds the problems of settings that are refused, and of a slug that is taken."""

    problems = ("400", "401", "403", "422", "429")


class ConfigurationDoor(ReadOnlyDoor[Configuration]):
    """Configurations: named settings of PostgreSQL. The newest first."""

    queryset = Configuration.objects.all()
    lookup_field = "slug"
    serializer_class = ConfigurationSerializer
    filterset_class = ConfigurationFilters
    schema = ConfigurationSchema()

    @extend_schema(request=NewConfigurationSerializer, responses={201: ConfigurationSerializer})
    def create(self, request: Request) -> Response:
        """Make a configuration. Refused with every fault, if its version would not start."""
        given = NewConfigurationSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        made = configurations.create(
            name=given.validated_data["name"],
            slug=given.validated_data.get("slug", ""),
            description=given.validated_data.get("description", ""),
            content=given.content(),
            by=request.user if isinstance(request.user, User) else None,
        )
        return Response(ConfigurationSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=CheckSerializer, responses={200: CheckedSerializer})
    @action(detail=False, methods=["post"], pagination_class=None, filterset_class=None)
    def check(self, request: Request, **_kwargs: Any) -> Response:
        """Say what each version would refuse, what it gets, and what bars comparisons."""
        given = CheckSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        checked = configuration_check.check(
            given.content(),
            given.validated_data["versions"],
            memory_bytes=given.validated_data.get("memory_bytes"),
        )
        return Response(CheckedSerializer(checked).data)
