"""Configurations: a list, one, a new one, and the check of settings for versions."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import person, project_of, require_own
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.services import projects
from runs.configurations.filters import ConfigurationFilters
from runs.configurations.services import check as configuration_check
from runs.configurations.services import configurations
from runs.configurations.services.check import MOST_SETTINGS, OFFERED_MAJORS, Remark
from runs.configurations.services.contents import Content
from runs.models import Configuration, Project, Token
from runs.shared.api import doors
from runs.shared.api.doors import ReadOnlyDoor, Schema
from runs.shared.api.shapes import computed


def known(version: str) -> None:
    """Raise ValidationError for what is no major version that can be asked."""
    if version not in OFFERED_MAJORS:
        message = _("Unknown version; known are: %(known)s.") % {
            "known": ", ".join(OFFERED_MAJORS)
        }
        raise serializers.ValidationError(message, "unknown_version")


class StrictSettings(serializers.DictField):
    """Names of settings to their values; numbers and truth values are taken as they are written."""

    child = serializers.CharField(
        max_length=2000, allow_blank=True, trim_whitespace=False
    )

    def to_internal_value(self, data: Any) -> dict[str, str]:
        """Texts by name. `true` and `false` become on and off."""
        if isinstance(data, dict):
            if len(data) > MOST_SETTINGS:
                message = _("More than %(most)d settings.") % {"most": MOST_SETTINGS}
                raise serializers.ValidationError(message, "too_many")
            words = {True: "on", False: "off"}
            data = {
                name: words[value] if isinstance(value, bool) else value
                for name, value in data.items()
            }
        texts: dict[str, str] = super().to_internal_value(data)
        return texts


class ContentSerializer(serializers.Serializer[Any]):
    """Settings, initdb options, and the version in whose words they are."""

    settings = StrictSettings(
        help_text="As in postgresql.conf: name to value, with units."
    )
    initdb_options = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, max_length=50
    )
    written_for = serializers.ChoiceField(
        [*OFFERED_MAJORS, ""],
        required=False,
        help_text="Major version for which the settings are written; left out: none in particular.",
    )

    def content(self) -> Content:
        """What was given. Only of a valid body."""
        fields = self.validated_data
        return Content(
            fields["settings"],
            fields.get("initdb_options", []),
            fields.get("written_for", ""),
        )


class NewConfigurationSerializer(ContentSerializer):
    """A configuration to make. Without a slug it gets one from its name."""

    name = serializers.CharField(max_length=200)
    slug = serializers.SlugField(
        max_length=100,
        required=False,
        help_text="Where it is taken by what others keep private, it gets a number.",
    )
    project = serializers.SlugField(
        max_length=80,
        required=False,
        help_text="Of a login, by its slug: left out, the default one or the first of one's own. "
        "A token makes it in its own.",
    )
    description = serializers.CharField(
        max_length=2000, required=False, allow_blank=True
    )


class CheckSerializer(ContentSerializer):
    """Settings to check for versions."""

    versions = serializers.ListField(
        child=serializers.CharField(validators=[known]),
        allow_empty=False,
        max_length=len(OFFERED_MAJORS),
        help_text="Major versions: 9.6, 18.",
    )
    memory_bytes = serializers.IntegerField(
        min_value=1, required=False, help_text="Of the machine, for the sums of memory."
    )


class RemarkSerializer(serializers.Serializer[Remark]):
    """One thing that is to be said of the settings: an error, a warning or an information."""

    severity = serializers.ChoiceField(["error", "warning", "info"])
    code = serializers.CharField()
    name = serializers.CharField(help_text="Of the setting; empty where it is none.")
    versions = serializers.ListField(source="majors", child=serializers.CharField())
    message = serializers.CharField()
    remedy = serializers.CharField()


class FittedSerializer(serializers.Serializer[Any]):
    """The settings as one version gets them."""

    version = serializers.CharField(source="major")
    settings = serializers.DictField(child=serializers.CharField())


class StartSerializer(serializers.Serializer[Any]):
    """Whether a server of the version starts with the settings as they are written."""

    version = serializers.CharField(source="major")
    starts = computed(serializers.BooleanField, lambda start: not start.as_written)
    refused = computed(
        serializers.ListField,
        lambda start: list(dict.fromkeys(finding.name for finding in start.as_written)),
        child=serializers.CharField(),
    )


class CheckedSerializer(serializers.Serializer[Any]):
    """What the check found.

    `startable` says that no version refuses what a run gets; `as_written` asks the other question,
    whether a server starts with the settings untouched.
    """

    sentences = computed(
        serializers.ListField,
        lambda checked: [sentence.text for sentence in checked.sentences],
        child=serializers.CharField(),
    )
    as_written = StartSerializer(source="starts", many=True)
    startable = computed(serializers.BooleanField, lambda checked: not checked.errors)
    findings = RemarkSerializer(source="remarks", many=True)
    translated = FittedSerializer(source="fitted", many=True)


class ConfigurationSerializer(serializers.Serializer[Configuration]):
    """A configuration: settings and initdb options under a name."""

    slug = serializers.CharField()
    project = serializers.CharField(
        source="project.slug", default=None, help_text="Null: it comes with BenchLab."
    )
    name = serializers.CharField()
    description = serializers.CharField()
    origin = serializers.CharField(help_text="built_in, published or own.")
    written_for = serializers.CharField(
        help_text="Empty: written for no particular version."
    )
    settings = serializers.DictField(child=serializers.CharField())
    initdb_options = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


class ConfigurationSchema(Schema):
    """Adds the problems of settings that are refused, and of a slug that is taken."""

    problems = ("400", "401", "403", "422", "429")


@addresses.door(
    {
        "configuration-check": addresses.acting(post=Right.OWN),
        "configuration-detail": addresses.reading(),
        "configuration-list": addresses.reading(post=Right.CONFIGURE),
    }
)
class ConfigurationDoor(ReadOnlyDoor[Configuration]):
    """Configurations: named settings of PostgreSQL. The newest first."""

    queryset = Configuration.objects.select_related("project")
    lookup_field = "slug"
    serializer_class = ConfigurationSerializer
    filterset_class = ConfigurationFilters
    schema = ConfigurationSchema()

    @extend_schema(request=NewConfigurationSerializer)
    def create(self, request: Request) -> Response:
        """Make a configuration. Refused with every fault, if its version would not start."""
        body = doors.taken(NewConfigurationSerializer, request)
        configuration = configurations.create(
            name=body.validated_data["name"],
            slug=body.validated_data.get("slug", ""),
            description=body.validated_data.get("description", ""),
            content=body.content(),
            project=_project(request, body.validated_data.get("project", "")),
            by=person(request),
        )
        return Response(
            ConfigurationSerializer(configuration).data, status=status.HTTP_201_CREATED
        )

    @extend_schema(request=CheckSerializer, responses={200: CheckedSerializer})
    @action(detail=False, methods=["post"], pagination_class=None, filterset_class=None)
    def check(self, request: Request, **_kwargs: Any) -> Response:
        """Say what each version would refuse, what it gets, and what bars comparisons."""
        body = doors.taken(CheckSerializer, request)
        checked = configuration_check.check(
            body.content(),
            body.validated_data["versions"],
            memory_bytes=body.validated_data.get("memory_bytes"),
        )
        return Response(CheckedSerializer(checked).data)


def _project(request: Request, slug: str) -> Project:
    """The token's project; that of the slug, in which the person may; or their usual one."""
    require_own(request, lambda token: slug in {"", token.project.slug})
    if isinstance(request.auth, Token) or not slug:
        return project_of(request, Right.CONFIGURE) or projects.default()
    choices = permissions.choices(cast(User, request.user), Right.CONFIGURE)
    project = choices.filter(slug=slug).first()
    if project is None:
        message = _("You make configurations in no project %(slug)s.") % {"slug": slug}
        raise serializers.ValidationError(
            {"project": [ErrorDetail(message, "does_not_exist")]}
        )
    return project
