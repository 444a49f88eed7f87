"""Every regular expression of the code, found by itself, and the texts that could make one slow.

A pattern is found as an object of an imported module, as a call in the source (also in functions),
as a validator of a field and as an address. `hostile` makes texts of what a pattern itself names.
`python -m tests.patterns` measures all of them, and prints the slowest text of each as JSON.
"""

import ast
import builtins
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pkgutil
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import django
from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.forms import BaseForm
from django.urls import URLResolver, get_resolver
from rest_framework.serializers import BaseSerializer

from tests.unit.timing import cpu_seconds

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchlab", "runs")
SHEBANG = "#!/usr/bin/env python3\n"
FUNCTIONS = frozenset(
    (
        "compile",
        "findall",
        "finditer",
        "fullmatch",
        "match",
        "search",
        "split",
        "sub",
        "subn",
    )
)
IMPORTS_RE = re.compile(r"^\s*(?:import|from)\b.*\bre\b", re.MULTILINE)
# Where a call's flags are, if not by name.
FLAGS_AT = {"compile": 1, "split": 3, "sub": 4, "subn": 4}


@dataclass(frozen=True)
class Found:
    """A pattern, and a place that has it."""

    pattern: str | bytes
    flags: int
    place: str

    @property
    def compiled(self) -> re.Pattern[Any]:
        """As the code has it."""
        return re.compile(self.pattern, self.flags)


class _Word(str):
    """What stands in a pattern for a value that only a running function has."""

    __slots__ = ()

    def __getattr__(self, _name: str) -> "_Word":
        return self


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return _Word("word")


def modules() -> Iterator[ModuleType]:
    """Everything that can be imported, and the programs that are one file each."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for each in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not each.name.endswith(".__main__"):  # which starts a program
                yield importlib.import_module(each.name)
    for path in programs():
        yield _program(path)


def programs() -> list[Path]:
    """Python programs without the ending of a module."""
    return [
        path
        for path in sorted((ROOT / "script").iterdir())
        if path.is_file() and path.read_text(encoding="utf-8").startswith(SHEBANG)
    ]


@cache
def _program(path: Path) -> ModuleType:
    name = path.name.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec
    made = importlib.util.module_from_spec(spec)
    # A frozen dataclass looks its module up.
    sys.modules[name] = made
    loader.exec_module(made)
    return made


def compiled(module: ModuleType) -> Iterator[Found]:
    """Pattern objects of a module: its own, in its classes, and in what holds others."""
    seen: set[int] = set()
    waiting = [
        (name, value)
        for name, value in vars(module).items()
        if not name.startswith("__")
    ]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, re.Pattern):
            yield Found(
                value.pattern, value.flags & ~re.DEBUG, f"{module.__name__}.{name}"
            )
        elif id(value) not in seen:
            seen.add(id(value))
            waiting += [(name, each) for each in _parts(module, value)]


def _parts(module: ModuleType, value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)
    if isinstance(value, type) and value.__module__ == module.__name__:
        return [each for name, each in vars(value).items() if not name.startswith("__")]
    slots = getattr(type(value), "__dataclass_fields__", None)
    return [getattr(value, each, None) for each in slots] if slots else []


def called(module: ModuleType) -> Iterator[Found | str]:
    """Patterns of calls in the source; the place of a call whose pattern is a variable."""
    path = Path(str(module.__file__))
    if not path.is_relative_to(ROOT):
        return
    text = path.read_text(encoding="utf-8")
    if not IMPORTS_RE.search(text):
        return
    tree = ast.parse(text)
    names = _regex_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (function := _function(node, names)):
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            pattern = _argument(node, 0, "pattern")
            if isinstance(pattern, ast.Name | ast.Attribute | ast.Subscript):
                yield from _variable(module, tree, pattern, place)
                continue
            flags = _argument(node, FLAGS_AT.get(function, 2), "flags")
            number = int(_value(module, flags)) if flags else 0
            yield Found(_value(module, pattern), number, place)


def _regex_names(tree: ast.Module) -> dict[str, str]:
    """What `re` and its functions are called there."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                each.asname or each.name: "" for each in node.names if each.name == "re"
            }
        if isinstance(node, ast.ImportFrom) and node.module == "runs.patterns":
            names |= {each.asname or each.name: "" for each in node.names}
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            names |= {each.asname or each.name: each.name for each in node.names}
    return names


def _function(node: ast.Call, names: Mapping[str, str]) -> str:
    called = node.func
    if isinstance(called, ast.Name) and names.get(called.id) in FUNCTIONS:
        return names[called.id]
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        return (
            called.attr
            if names.get(called.value.id) == "" and called.attr in FUNCTIONS
            else ""
        )
    return ""


def _argument(node: ast.Call, place: int, name: str) -> Any:
    by_name = {each.arg: each.value for each in node.keywords}
    return node.args[place] if place < len(node.args) else by_name.get(name)


def _value(module: ModuleType, node: ast.expr) -> Any:
    code = compile(ast.Expression(node), "<pattern>", "eval")
    return eval(code, {}, _Names(vars(module)))


def _variable(
    module: ModuleType, tree: ast.Module, node: ast.expr, place: str
) -> Iterator[Found | str]:
    """What the module assigns to that name anywhere."""
    texts = [
        _value(module, each.value)
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign)
        and [ast.dump(node)] == [_loaded(at) for at in each.targets]
    ]
    yield from (Found(text, 0, place) for text in texts)
    if not texts:
        yield place


def _loaded(target: ast.expr) -> str:
    return ast.dump(target).replace("Store()", "Load()")


@cache
def of_source() -> tuple[list[Found], list[str]]:
    """Each pattern of modules and programs once; and the calls whose pattern is a variable."""
    found: dict[tuple[str | bytes, int], Found] = {}
    variable = []
    for module in modules():
        for each in (*called(module), *compiled(module)):
            if isinstance(each, str):
                variable.append(each.rpartition(":")[0])
            else:
                found.setdefault((each.pattern, each.compiled.flags), each)
    return list(found.values()), sorted(set(variable))


def of_addresses() -> list[Found]:
    """What addresses are compared with."""
    found: dict[str, Found] = {}
    waiting: list[Any] = [get_resolver()]
    while waiting:
        each = waiting.pop()
        if isinstance(each, URLResolver):
            waiting += each.url_patterns
        pattern = getattr(each.pattern, "regex", None)
        if pattern is not None:
            found.setdefault(
                pattern.pattern, Found(pattern.pattern, 0, f"address {each.pattern}")
            )
    return list(found.values())


def validators() -> list[tuple[str, RegexValidator]]:
    """The validators with a pattern of all forms, serializers and models: they look at lengths."""
    found: dict[str, tuple[str, RegexValidator]] = {}
    for name, field in _fields():
        for each in getattr(field, "validators", ()):
            if isinstance(each, RegexValidator):
                found.setdefault(repr((type(each), each.regex.pattern)), (name, each))
    return list(found.values())


def _fields() -> Iterator[tuple[str, Any]]:
    for form in below(BaseForm):
        yield from ((f"{form.__name__}.{name}", each) for name, each in _declared(form))
    for serializer in below(BaseSerializer):
        declared = getattr(serializer, "_declared_fields", {})
        yield from (
            (f"{serializer.__name__}.{name}", each) for name, each in declared.items()
        )
    for model in apps.get_models():
        yield from (
            (f"{model.__name__}.{each.name}", each) for each in model._meta.get_fields()
        )


def _declared(form: Any) -> Iterable[tuple[str, Any]]:
    return getattr(form, "base_fields", {}).items()


def below(kind: Any) -> Iterator[Any]:
    """Its subclasses, once each."""
    seen = {kind}
    waiting = [kind]
    while waiting:
        for each in waiting.pop().__subclasses__():
            if each not in seen:
                seen.add(each)
                waiting.append(each)
                yield each


# Texts that could make a pattern slow.

# A pattern that is not linear takes a multiple of this at such a length; 100 kB then take 0.2 s.
SIZE = 10_000
SECONDS = 0.02
# One of each kind that a class can tell apart; what a pattern names itself comes on top.
ALPHABET = " \t\n\\'\"`0aAeEx_.,:;-+*/%=<>()[]{}|&#$@!?~^é表\x00"
UNITS = (
    " \n",
    "\r\n",
    "()",
    "[]",
    "{}",
    "((",
    "a ",
    "a.",
    "0.",
    "1,",
    "--",
    "''",
    "'\\",
    "\\\\ ",
    "$$",
    "$a$",
    "/*",
    "*/",
    "<!--",
    "::",
    "//",
    "a=1 ",
    "-+",
    "0e",
    "%s",
    "a:",
    ".\n",
)
_parser: Any = re._parser  # type: ignore[attr-defined]
_REPEATS = frozenset(("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"))
MOST_UNITS = 36


def repeats(found: Found) -> bool:
    """Whether it can read on at all: without a repetition each attempt ends after its length."""
    return any(
        op in _REPEATS
        for op, _value in _nodes(_parser.parse(found.pattern, found.flags))
    )


def _nodes(tree: Any) -> Iterator[tuple[str, Any]]:
    for op, value in tree:
        yield str(op), value
        yield from (each for part in _branches(value) for each in _nodes(part))


def _branches(value: Any) -> Iterator[Any]:
    if isinstance(value, _parser.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _branches(each)


def units(found: Found) -> list[str]:
    """What is repeated: characters that its classes tell apart, and parts of almost a match."""
    tree = _parser.parse(found.pattern, found.flags)
    sets, characters = _classes(tree, found)
    by_kind: dict[tuple[bool, ...], str] = {}
    for each in [*characters, *ALPHABET]:
        by_kind.setdefault(tuple(bool(kind.match(each)) for kind in sets), each)
    made = [*by_kind.values(), *(characters[:10])]
    for prefix, body in _pumped(tree):
        made += [body, prefix + body, body + prefix]
    whole = _example(tree)
    made += [
        whole,
        whole[:-1],
        whole + whole[:-1],
        *(whole + each for each in " \n\\'0a"),
    ]
    return [each for each in dict.fromkeys(made) if each][:MOST_UNITS]


def _classes(tree: Any, found: Found) -> tuple[list[re.Pattern[str]], list[str]]:
    """Each class and character that it names, as a pattern and as one of its characters."""
    sets: dict[str, None] = {}
    characters: dict[str, None] = {}
    for op, value in _nodes(tree):
        if op in {"LITERAL", "NOT_LITERAL"}:
            characters[chr(value)] = None
        elif op == "IN":
            for kind, each in value:
                if str(kind) in {"LITERAL", "RANGE"}:
                    characters[chr(each[0] if isinstance(each, tuple) else each)] = None
            sets[_written(value)] = None
    flags = found.flags & (re.ASCII | re.IGNORECASE | re.UNICODE)
    single = [*sets, *(re.escape(each) for each in characters), "."]
    return [re.compile(each, flags & ~re.UNICODE) for each in single], list(characters)


_CATEGORIES = {
    f"CATEGORY_{'NOT_' if letter.isupper() else ''}{name}": f"\\{letter}"
    for name, letters in {"DIGIT": "dD", "SPACE": "sS", "WORD": "wW"}.items()
    for letter in letters
}


def _written(members: Any) -> str:
    text = ""
    for kind, value in members:
        match str(kind):
            case "NEGATE":
                text += "^"
            case "LITERAL":
                text += re.escape(chr(value))
            case "RANGE":
                text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
            case "CATEGORY":
                text += _CATEGORIES[str(value)]
    return f"[{text}]"


def _example(tree: Any) -> str:
    """A short text that it (nearly) matches."""
    return "".join(_sample(str(op), value) for op, value in tree)


def _sample(op: str, value: Any) -> str:
    match op:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL" | "ANY":
            return "a" if value != ord("a") else "b"
        case "IN":
            kind = re.compile(_written(value))
            return next((each for each in "a0 A-" + ALPHABET if kind.match(each)), "")
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _example(value[2]) * max(1, min(value[0], 50))
        case "BRANCH":
            return _example(value[1][0])
        case "SUBPATTERN":
            return _example(value[3])
        case "ATOMIC_GROUP":
            return _example(value)
    return ""


def _pumped(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Each repetition: what has to stand before it, and once what it repeats."""
    for op, value in tree:
        name = str(op)
        if name in _REPEATS:
            yield before, _example(value[2])
        inner = value[1] if name == "BRANCH" else list(_branches(value))
        for part in inner:
            yield from _pumped(part, before)
        before += _sample(name, value)


# What a pattern refers back to is another one each time.
COUNTED = tuple(
    "".join(f"{before}{number}{after}" for number in range(SIZE // 8))
    for before, after in (("$", "$ "), ("<", ">"), ("a", "="), ("", "."), ("\n", "'"))
)


def hostile(found: Found, common: Iterable[str] = UNITS) -> Iterator[str | bytes]:
    """Long texts: each unit repeated, after what begins a match, and before what ends it."""
    tree = _parser.parse(found.pattern, found.flags)
    prefixes = {before for before, _body in _pumped(tree)} - {""}
    own = units(found)
    texts = dict.fromkeys(long(unit) for unit in (*common, *own))
    texts |= dict.fromkeys(COUNTED if common else ())
    for before, body in list(dict.fromkeys(_pumped(tree)))[:12]:
        # What it refers back to has no example.
        if not body:
            continue
        texts[before + long(body) + "\x00"] = None
    texts |= dict.fromkeys(
        before + long(unit) for before in list(prefixes)[:3] for unit in own[:8]
    )
    for text in texts:
        yield text.encode("utf-8") if isinstance(found.pattern, bytes) else text


def long(unit: str) -> str:
    return unit * (SIZE // len(unit) + 1)


# Measuring.


@dataclass(frozen=True)
class Case:
    """What is done with hostile texts."""

    place: str
    found: Found
    ways: Mapping[str, Callable[[Any], Any]]
    units: tuple[str, ...] = UNITS


def cases() -> list[Case]:
    """Each pattern by both of the ways in which one can read a text, each validator by its own."""
    patterns, _variable = of_source()
    made = [
        Case(f"{each.place} {each.pattern!r}", each, _ways(each.compiled))
        for each in patterns
        if repeats(each)
    ]
    # All of these are made of the same few classes, from the beginning of the text.
    made += [
        Case(each.place, each, _ways(each.compiled), ())
        for each in of_addresses()
        if repeats(each)
    ]
    for name, validator in validators():
        pattern = Found(validator.regex.pattern, validator.regex.flags, name)
        made.append(Case(f"validator of {name}", pattern, {"call": _quiet(validator)}))
    return made


def _ways(pattern: re.Pattern[Any]) -> dict[str, Callable[[Any], Any]]:
    def find(text: Any) -> None:
        for _found in pattern.finditer(text):
            pass

    return {"fullmatch": pattern.fullmatch, "finditer": find}


def _quiet(validator: RegexValidator) -> Callable[[Any], None]:
    def call(text: Any) -> None:
        with suppress(ValidationError):
            validator(text)

    return call


@dataclass(frozen=True)
class Slowest:
    """The text that took longest; `seconds` is infinite where the process was ended."""

    place: str
    seconds: float
    way: str
    text: str


# An exponential one is ended by the kernel.
MOST_SECONDS = 1


def measure(only: Iterable[Found] | None = None) -> list[Slowest]:
    """The slowest text of each pattern, in one other process at a time."""
    slowest: list[Slowest] = []
    while True:
        words = [sys.executable, "-m", "tests.patterns", str(len(slowest))]
        if only is not None:
            words += [json.dumps([str(each.pattern) for each in only])]
        environment = os.environ | {"DJANGO_SETTINGS_MODULE": "benchlab.settings"}
        done = subprocess.run(
            words,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        begun: list[Any] = []
        for line in done.stdout.splitlines():
            kind, *rest = json.loads(line)
            if kind == "begin":
                begun = rest
            else:
                slowest.append(Slowest(*rest))
                begun = []
        if not begun:
            assert done.returncode == 0, done.returncode
            return slowest
        slowest.append(Slowest(begun[0], float("inf"), begun[1], begun[2]))


def _say(*words: Any) -> None:
    print(json.dumps(words), flush=True)


def _slowest(case: Case, texts: slice) -> Slowest:
    worst = Slowest(case.place, 0.0, "", "")
    for text in list(hostile(case.found, case.units))[texts]:
        for way, read in case.ways.items():
            shown = repr(text[:20] + text[-5:])
            _say("begin", case.place, way, shown)
            _limit()
            seconds = min_of(lambda: read(text))  # noqa: B023
            _lift_limit()
            if seconds > worst.seconds:
                worst = Slowest(case.place, seconds, way, shown)
    return worst


def _limit() -> None:
    seconds = int(time.process_time()) + 1 + MOST_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def _lift_limit() -> None:
    """What makes the next texts and starts the next case is not limited."""
    resource.setrlimit(
        resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )


# The processor seconds of `_known_work` where the limits were written down.
KNOWN_SECONDS = 0.008


def min_of(read: Callable[[], Any], most: float = SECONDS) -> float:
    """The processor time of it; where it is more than `most`, the least of three tries.

    Of these a machine that is slow at known work gets as much off.
    """
    least = cpu_seconds(read, tries=1)
    if least < most:
        return least
    return min(least, cpu_seconds(read, tries=2)) / slowness()


def slowness() -> float:
    """How many times as long known work takes as where the limits were written down; at least 1."""
    return max(1.0, cpu_seconds(_known_work, tries=5) / KNOWN_SECONDS)


def _known_work() -> int:
    pattern = re.compile(r"(\w+): +(\d+\.\d+) s")
    lines = ("progress: 1.0 s, 650.5 tps, lat 1.5 ms\n" * 20_000).splitlines()
    return sum(1 for line in lines if pattern.match(line))


def main(first: int, only: list[str] | None) -> None:
    """Measure from the case with that number on."""
    django.setup()
    listed = cases() if only is None else [_case(each) for each in only]
    # On each commit each pattern reads a third of its texts, and those of a choice read all.
    share = 1 if only is not None or "BENCHLAB_TEST_ALL" in os.environ else 3
    for number, case in enumerate(listed[first:], start=first):
        found = _slowest(case, slice(number % share, None, share))
        _say("slowest", found.place, found.seconds, found.way, found.text)


def _case(pattern: str) -> Case:
    found = Found(pattern, 0, pattern)
    return Case(pattern, found, _ways(found.compiled))


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else None)
