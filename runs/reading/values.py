"""What a reading process answers: JSON, taken back into dataclasses by their annotations alone.

The process may do what a foreign file wants. So no name of a class, and no code, comes from it:
the asking side knows what kind of value it expects, and takes nothing else.
"""

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from runs.wording import Marked

Decoder = Callable[[Any], Any]


class UnexpectedValueError(ValueError):
    """The answer is not of the kind that was asked for."""


def to_json(value: Any) -> bytes:
    """Dataclasses as objects, moments in ISO 8601. Raises TypeError for anything else."""
    return json.dumps(
        value, default=_plain, ensure_ascii=True, check_circular=False
    ).encode()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no value that is handed over")


@cache
def decoder(kind: Any, owner: type | None) -> Decoder:
    """What takes a plain value as one of the annotation `kind`; `owner` is the class of `Self`.

    It raises UnexpectedValueError, or another ValueError of a class's own check.
    """
    if kind is Any:
        return _anything
    if kind is Self:
        return decoder(owner, owner)
    if kind in _PLAIN:
        return _type_decoder(kind, _PLAIN[kind])
    if kind is datetime:
        return _moment
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind)
    return _generic_decoder(kind, owner)


def _generic_decoder(kind: Any, owner: type | None) -> Decoder:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _choice_decoder(arguments)
    if origin in (Union, types.UnionType):
        return _union_decoder([decoder(argument, owner) for argument in arguments])
    if origin in (list, tuple, Sequence):
        is_list = origin is list
        if origin is tuple and arguments[-1] is not Ellipsis:
            return _fixed([decoder(argument, owner) for argument in arguments])
        return _sequence(decoder(arguments[0], owner), list if is_list else tuple)
    if origin in (dict, Mapping):
        return _mapping(decoder(arguments[1], owner))
    raise TypeError(f"{kind} is no annotation of a value that is handed over")


# JSON has 1 for 1.0, and true for nothing but true.
_PLAIN: dict[Any, tuple[type, ...]] = {
    str: (str,),
    Marked: (str,),
    int: (int,),
    float: (float, int),
    bool: (bool,),
    types.NoneType: (types.NoneType,),
}


def _anything(value: Any) -> Any:
    return value


def _type_decoder(kind: Any, allowed: tuple[type, ...]) -> Decoder:
    def take(value: Any) -> Any:
        if type(value) not in allowed:
            raise UnexpectedValueError(
                f"{type(value).__name__} in place of {kind.__name__}"
            )
        return value

    return take


def _moment(value: Any) -> datetime:
    return datetime.fromisoformat(_checked(value, str))


def _choice_decoder(choices: tuple[Any, ...]) -> Decoder:
    def take(value: Any) -> Any:
        if value not in choices:
            raise UnexpectedValueError(f"{value!r:.80} is none of {choices}")
        return value

    return take


def _union_decoder(decoders: list[Decoder]) -> Decoder:
    def take(value: Any) -> Any:
        for take_one in decoders:
            try:
                return take_one(value)
            except UnexpectedValueError:
                continue
        raise UnexpectedValueError(f"{type(value).__name__} is of none of the kinds")

    return take


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise UnexpectedValueError(
            f"{type(value).__name__} in place of {kind.__name__}"
        )
    return value


def _fixed(decoders: list[Decoder]) -> Decoder:
    def take(value: Any) -> tuple[Any, ...]:
        pairs = zip(decoders, _checked(value, list), strict=True)
        return tuple(take_one(item) for take_one, item in pairs)

    return take


def _sequence(take_one: Decoder, kind: type) -> Decoder:
    def take(value: Any) -> Any:
        return kind(map(take_one, _checked(value, list)))

    return take


def _mapping(take_one: Decoder) -> Decoder:
    def take(value: Any) -> dict[str, Any]:
        return {name: take_one(item) for name, item in _checked(value, dict).items()}

    return take


def _dataclass(kind: type) -> Decoder:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    # Of a class that names itself, the decoder is asked for when it is needed.
    decoders: dict[str, Decoder] = {}

    def take(value: Any) -> Any:
        if not decoders:
            decoders.update({name: decoder(hints[name], kind) for name in names})
        if _checked(value, dict).keys() != decoders.keys():
            raise UnexpectedValueError(f"other fields than those of {kind.__name__}")
        new: Any = object.__new__(kind)
        vars(new).update({name: decoders[name](value[name]) for name in names})
        if check := getattr(new, "__post_init__", None):
            check()
        return new

    return take
