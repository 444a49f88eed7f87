"""The texts for users, taken from the code and the templates, and those that a catalogue lacks.

`python -m tests.texts` prints them and fails if there is any. It needs no GNU gettext.
"""

import ast
import functools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[1]
WITH_CONTEXT = {"pgettext", "pgettext_lazy"}
KEYWORDS = WITH_CONTEXT | {
    "_",
    "_now",
    "gettext",
    "gettext_lazy",
    "gettext_noop",
    "ngettext",
    "ngettext_lazy",
}
# What Django makes of a template's tags for xgettext: calls with literals between noise.
CALL = re.compile(r"\b(p?)n?gettext\(")
LITERAL = re.compile(r"u?('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\s*,?\s*", re.DOTALL)

Message = tuple[str, str]  # context ("" for none) and text


def untranslated(catalogue: Path) -> list[str]:
    """The texts that the catalogue has no translation for, each with its place."""
    with catalogue.open("rb") as file:
        known = read_po(file)
    return [
        f"{place}: {text!r}"
        for place, (context, text) in in_code_and_templates()
        if not _is_translated(known, context, text)
    ]


def _is_translated(catalogue: Catalog, context: str, text: str) -> bool:
    message = catalogue.get(text, context or None)
    if message is None or message.fuzzy:
        return False
    found = message.string
    return all(found) if isinstance(found, tuple | list) else bool(found)


@functools.cache
def in_code_and_templates() -> tuple[tuple[str, Message], ...]:
    """Every text with its file and line. Reading them all takes a second of the processor."""
    return tuple(_in_code_and_templates())


def _in_code_and_templates() -> Iterator[tuple[str, Message]]:
    for folder in ("runs", "benchlab"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from _placed(path, of_python(path))
    for path in sorted((ROOT / "templates").rglob("*")):
        if path.is_file():
            yield from _placed(path, of_template(path.read_text()))


def _placed(
    path: Path, found: Iterator[tuple[int, Message]]
) -> Iterator[tuple[str, Message]]:
    return ((f"{path.relative_to(ROOT)}:{line}", message) for line, message in found)


def of_python(path: Path) -> Iterator[tuple[int, Message]]:
    """The texts of a module, with their lines."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
        said = [each for each in texts if isinstance(each, str)]
        if name in KEYWORDS and said:
            yield (
                node.lineno,
                (said[0], said[1]) if name in WITH_CONTEXT else ("", said[0]),
            )


def of_template(text: str) -> Iterator[tuple[int, Message]]:
    """The texts of a template, with their lines."""
    from django.utils.translation.template import templatize

    prepared = templatize(text)
    for call in CALL.finditer(prepared):
        said, place = [], call.end()
        while literal := LITERAL.match(prepared, place):
            said.append(str(ast.literal_eval(literal[1])))
            place = literal.end()
        if not said:
            continue
        line = prepared.count("\n", 0, call.start()) + 1
        yield line, (said[0], said[1]) if call[1] else ("", said[0])


def main() -> int:
    """Print what is missing in each catalogue."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchlab.settings")
    missing = [
        line
        for catalogue in sorted(ROOT.glob("locale/*/LC_MESSAGES/django.po"))
        for line in untranslated(catalogue)
    ]
    print("\n".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
