"""Answers that are frozen values: their serializers have the fields that the values have."""

import collections.abc
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rest_framework import serializers

from runs.analysis.judged_runs import Judged

PLAIN = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    bool: serializers.BooleanField,
}


@cache  # a component of the schema has one class
def shape(
    kind: Any, /, doc: str = "", without: tuple[str, ...] = (), **replaced_fields: Any
) -> Any:
    """The serializer of a dataclass, with some fields replaced. Its names are public JSON."""
    hints = get_type_hints(kind)
    names = [
        field.name
        for field in fields(kind)
        if field.name not in {*without, *replaced_fields}
    ]
    own_fields = {name: _field(hints[name]) for name in names}
    described = {"__doc__": doc or kind.__doc__, **own_fields, **replaced_fields}
    return type(f"{kind.__name__}Serializer", (serializers.Serializer,), described)


def _field(hint: Any, **options: Any) -> Any:
    """Raises KeyError for a type that no answer has."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:  # of something and None
        return _field(arguments[0], allow_null=True)
    if origin is Literal:
        return serializers.ChoiceField(arguments, **options)
    if origin is collections.abc.Mapping:
        return serializers.DictField(child=_field(arguments[1]), **options)
    kind: Any = arguments[0] if origin else hint
    if hasattr(kind, "__dataclass_fields__"):
        return shape(kind)(**options, **({"many": True} if origin else {}))
    if origin:
        return serializers.ListField(child=_field(kind), **options)
    return PLAIN[kind](**options)


def computed(
    field: Any, compute: Callable[[Any], Any], help_text: str = "", **options: Any
) -> Any:
    """A field of an answer that is computed of the whole value."""
    members = {"to_representation": lambda _self, value: compute(value)}
    kind = type(field.__name__, (field,), members)
    return kind(source="*", read_only=True, help_text=help_text, **options)


JudgedSerializer = shape(
    Judged,
    "How many runs have each judgement. Invalid ones are left out of all figures by rule.",
    without=("left_out", "again", "ours"),
)


class ChangeRevisionSerializer(serializers.Serializer[Any]):
    """The first revision after the change. Subject and author are empty where unknown."""

    sha = serializers.CharField()
    ref = serializers.CharField()
    url = serializers.CharField()
    committed_at = serializers.DateTimeField(allow_null=True)
    subject = serializers.CharField()
    author = serializers.CharField()
