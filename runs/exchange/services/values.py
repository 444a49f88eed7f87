"""Validates the values in a line of an import: each must be what its column takes.

A file may come from anybody. The model's field decides what a value may be; what is stored as JSON
and later read by its keys has a shape here. `wrong` says what a value is not, or nothing.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import connection, models
from django.utils.translation import gettext_noop as _

from runs import models as stored
from runs.models.runs import CONTROL, DIGEST, MEDIA_TYPE
from runs.wording import is_wording

MODELS: Mapping[str, type[models.Model]] = {
    "project": stored.Project,
    "scenario": stored.Scenario,
    "metric": stored.Metric,
    "hardware": stored.HardwareProfile,
    "environment": stored.Environment,
    "settings": stored.SettingsSnapshot,
    "configuration": stored.Configuration,
    "configuration_revision": stored.ConfigurationRevision,
    "topology": stored.Topology,
    "revision": stored.Revision,
    "campaign": stored.Campaign,
    "cell": stored.Cell,
    "run": stored.Run,
    "measurement": stored.Measurement,
    "artifact": stored.Artifact,
    "event": stored.RunEvent,
    "series": stored.Series,
    "command": stored.Command,
    "annotation": stored.Annotation,
    "change": stored.Change,
}
MOST_VALUES = 1_000_000  # of a series
# Above it, the squares that PostgreSQL sums up overflow.
LARGEST = 1e100
LONGEST_EXPECTED = 10 * 366 * 24 * 3600.0
# A file's name becomes the end of a URL, and the name under which it is downloaded.
FILE_NAME = re.compile(r"[^/\\]+(/[^/\\]+)*")
IS_URL = URLValidator(schemes=["http", "https"])


def wrong(kind: str, name: str, value: Any) -> str:
    """What a field of a line is not (`a whole number`); empty if it is valid."""
    if (kind, name) in SHAPES:
        description, is_so = SHAPES[kind, name]
        return "" if is_so(value) else description
    model = MODELS.get(kind)
    if model is None or name not in _columns(model):
        # What a line names is text, a revision number, or nothing; lists are checked elsewhere.
        is_fine = (
            value is None
            or _is_whole(value)
            or isinstance(value, list)
            or _is_line(value)
        )
        return "" if is_fine else _("a name")
    field = _columns(model)[name]
    if value is None:
        return "" if field.null else _("set")
    return next(
        (
            description
            for field_type, description, is_so in TYPES
            if isinstance(field, field_type) and not is_so(field, value)
        ),
        "",
    )


@cache
def _columns(model: type[models.Model]) -> Mapping[str, "models.Field[Any, Any]"]:
    return {
        field.name: field
        for field in model._meta.concrete_fields
        if not field.is_relation
    }


def is_text(value: Any) -> bool:
    """Text that PostgreSQL can store."""
    if not isinstance(value, str) or "\0" in value:
        return False
    return value.isascii() or not any(
        "\ud800" <= character <= "\udfff" for character in value
    )


def _is_line(value: Any) -> bool:
    return is_text(value) and not CONTROL.search(value)


def _is_number(value: Any) -> bool:
    is_numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return is_numeric and -LARGEST <= value <= LARGEST


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fits_line(field: Any, value: Any) -> bool:
    if not _is_line(value) or len(value) > (field.max_length or len(value)):
        return False
    try:
        if value and isinstance(field, models.URLField):
            IS_URL(value)
        elif value and isinstance(field, models.SlugField):
            field.run_validators(value)
    except ValidationError:
        return False
    return bool(value) or field.blank or not isinstance(field, models.SlugField)


def _fits_whole(field: Any, value: Any) -> bool:
    least, most = connection.ops.integer_field_range(field.get_internal_type())
    return _is_whole(value) and (least or 0) <= value <= (most or 0)


def _fits_array(_field: Any, value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_VALUES
        # Stored in four bytes each.
        and all(
            number is None or (_is_number(number) and abs(number) < 3e38)
            for number in value
        )
    )


def _is_storable(value: Any) -> bool:
    """Whether jsonb accepts it: text without NUL, finite numbers."""
    waiting = [value]
    while waiting:
        element = waiting.pop()
        if isinstance(element, dict):
            waiting += [*element, *element.values()]
        elif isinstance(element, list):
            waiting += element
        elif isinstance(element, str):
            if not is_text(element):
                return False
        elif isinstance(element, float) and not math.isfinite(element):
            return False
    return True


def _is_json(value: Any) -> bool:
    return isinstance(value, dict | list) and _is_storable(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and _is_storable(value)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def _is_scalars(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(map(_is_line, value))
        and all(
            isinstance(member, bool) or _is_number(member) or _is_line(member)
            for member in value.values()
        )
    )


def _is_named_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_text, [*value, *value.values()]))


def _is_snapshot(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_text(name)
        and isinstance(row, dict)
        and _is_storable(row)
        and _has_setting(row)
        for name, row in value.items()
    )


def _has_setting(row: Mapping[str, Any]) -> bool:
    return all(
        row.get(name) is None or is_text(row[name])
        for name in ("setting", "unit", "source")
    )


def _is_factors(value: Any) -> bool:
    return _is_object(value) and all(
        isinstance(member, list) for member in value.values()
    )


def _is_notes(value: Any) -> bool:
    return (isinstance(value, list) and _is_storable(value)) and all(
        isinstance(note, dict)
        and isinstance(note.get("message", ""), str)
        and _is_wording(note.get("wording", {}))
        for note in value
    )


def _is_wording(value: Any) -> bool:
    return _is_object(value) and (not value or is_wording(value))


def _is_speed(value: Any) -> bool:
    """By machine; of the rates only what charts and certificates read has a shape."""
    return value is None or (
        _is_object(value)
        and all(
            isinstance(machine, dict)
            and all(map(_are_rates, (machine.get("before"), machine.get("after"))))
            for machine in value.values()
        )
    )


def _are_rates(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and all(map(_is_number, value.values()))
    )


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _is_file_name(value: Any) -> bool:
    return (
        _is_line(value)
        and len(value) <= 200
        and FILE_NAME.fullmatch(value) is not None
        and not {".", ".."} & set(value.split("/"))
    )


def _is_media_type(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= 100
        and MEDIA_TYPE.fullmatch(value) is not None
    )


def _is_size(value: Any) -> bool:
    return _is_whole(value) and 0 <= value < 2**62


def _is_period(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 < value <= LONGEST_EXPECTED)


def _is_project(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"slug", "name", "public"}
        and bool(value["slug"])
        and not any(wrong("project", name, value[name]) for name in ("slug", "name"))
        and isinstance(value["public"], bool)
    )


def is_name(value: Any) -> bool:
    """What an instance may call itself."""
    return _is_line(value) and len(value) <= 40


def _is_provenance(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and value.keys() == {"instance", "key", "is_verified", "at"}
        and is_name(value["instance"])
        and (value["key"] == "" or _is_digest(value["key"]))
        and isinstance(value["is_verified"], bool)
        and _is_line(value["at"])
    )


def _is_plan(value: Any) -> bool:
    """Nothing, or an object whose known parts have the types that pages and scripts expect."""
    if value is None:
        return True
    return (
        _is_object(value)
        and all(isinstance(value.get(name, ""), str) for name in PLAN_TEXTS)
        and all(
            _is_size(value.get(name, 0))
            for name in ("version_num", "client_version_num")
        )
        and all(
            isinstance(value.get(name, {}), dict) for name in ("settings", "treatment")
        )
        and _is_rows(value.get("generators", []), GENERATOR_TEXTS)
        and _is_rows(value.get("machines", []), MACHINE_TEXTS)
        and _is_rows(value.get("clusters", []), CLUSTER_TEXTS)
        and _is_rows(value.get("translated", []), TRANSLATED_TEXTS)
        and all(
            isinstance(entry.get("server_id"), int)
            for list_name in ("generators", "machines")
            for entry in value.get(list_name, [])
        )
        and all(
            isinstance(entry.get("parameters"), dict)
            for entry in value.get("translated", [])
        )
    )


def _is_rows(value: Any, texts: frozenset[str]) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, dict) and all(is_text(row.get(name)) for name in texts)
        for row in value
    )


PLAN_TEXTS = frozenset(
    {"campaign", "scenario", "base_dir", "bindir", "client_bindir", "psql_bindir"}
)
GENERATOR_TEXTS = frozenset(
    {"name", "base_dir", "client_bindir", "address_of_database"}
)
MACHINE_TEXTS = frozenset({"name", "base_dir", "address_of_database"})
CLUSTER_TEXTS = frozenset({"name", "role", "origin", "machine", "bindir"})
TRANSLATED_TEXTS = frozenset(
    {"name_from", "value_from", "name_to", "value_to", "reason"}
)

TYPES: tuple[tuple[type, str, Callable[[Any, Any], bool]], ...] = (
    (models.CharField, _("one line that is not too long"), _fits_line),
    (models.TextField, _("text"), lambda _field, value: is_text(value)),
    (
        models.BooleanField,
        _("true or false"),
        lambda _field, value: isinstance(value, bool),
    ),
    (models.IntegerField, _("a whole number within its bounds"), _fits_whole),
    (models.FloatField, _("a finite number"), lambda _field, value: _is_number(value)),
    (ArrayField, _("a list of finite numbers"), _fits_array),
    (models.JSONField, _("an object or a list"), lambda _field, value: _is_json(value)),
)
# By line and field, where the column alone does not say it.
SHAPES: Mapping[tuple[str, str], tuple[str, Callable[[Any], bool]]] = {
    ("benchlab-export", "project"): (_("a project"), _is_project),
    ("benchlab-export", "instance"): (_("a name"), is_name),
    ("metric", "shared"): (_("true or false"), lambda value: isinstance(value, bool)),
    ("run", "imported"): (_("where a run came from"), _is_provenance),
    ("file", "sha256"): (_("a SHA-256 of 64 hexadecimal digits"), _is_digest),
    ("file", "gzip"): (_("text"), is_text),
    ("file", "last"): (_("true or false"), lambda value: isinstance(value, bool)),
    ("artifact", "sha256"): (_("a SHA-256 of 64 hexadecimal digits"), _is_digest),
    ("artifact", "name"): (_("the name of a file"), _is_file_name),
    ("artifact", "media_type"): (_("a media type"), _is_media_type),
    ("artifact", "size"): (_("a size"), _is_size),
    ("hardware", "facts"): (_("an object"), _is_object),
    ("environment", "facts"): (_("an object"), _is_object),
    ("settings", "settings"): (_("settings by name"), _is_snapshot),
    ("configuration", "settings"): (_("texts by name"), _is_named_texts),
    ("configuration", "initdb_options"): (_("a list of texts"), _is_strings),
    ("configuration_revision", "settings"): (_("texts by name"), _is_named_texts),
    ("configuration_revision", "initdb_options"): (_("a list of texts"), _is_strings),
    ("campaign_configuration", "configuration_slug"): (_("a name"), _is_line),
    ("campaign_configuration", "revision_number"): (_("a whole number"), _is_whole),
    ("revision", "parents"): (_("a list of texts"), _is_strings),
    ("campaign", "factors"): (_("lists by name"), _is_factors),
    ("campaign", "parameters"): (_("an object"), _is_object),
    ("campaign", "treatment"): (_("an object"), _is_object),
    ("campaign", "expected_every"): (_("a number of seconds"), _is_period),
    ("cell", "levels"): (_("one value by name"), _is_scalars),
    ("run", "labels"): (_("texts by name"), _is_named_texts),
    ("run", "quality"): (_("a list of objects"), _is_notes),
    ("run", "wording"): (_("an object"), _is_wording),
    ("event", "wording"): (_("an object"), _is_wording),
    ("run", "speed"): (_("an object"), _is_speed),
    ("run", "plan"): (_("the plan of a run"), _is_plan),
    ("series", "interval"): (
        _("a number of seconds"),
        lambda number: _is_number(number) and number > 0,
    ),
    ("command", "argv"): (_("a list of texts"), _is_strings),
}
