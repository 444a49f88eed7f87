"""XML without a document type, so without entities: the parser itself refuses one.

It refuses in whatever encoding the file is, as `defusedxml` does by the same handlers.
"""

from typing import NoReturn
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

# Deeper files hold nothing that anybody reads here.
MOST_DEPTH = 200


class EntitiesError(ValueError):
    """The file has a document type, which may declare entities."""


class _Builder:
    def __init__(self) -> None:
        self.tree = TreeBuilder()
        self._depth = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ParseError(f"elements are nested deeper than {MOST_DEPTH}")
        self.tree.start(name, attributes)

    def end(self, name: str) -> None:
        self._depth -= 1
        self.tree.end(name)


def root_of(content: bytes) -> Element:
    """The outermost element. Raises EntitiesError, and ParseError for what is no XML."""
    builder = _Builder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.tree.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    parser.ExternalEntityRefHandler = _refuse
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, EntitiesError):
            raise
        raise ParseError(str(error)) from error
    root: Element = builder.tree.close()
    return root


def _refuse(*_arguments: object) -> NoReturn:
    raise EntitiesError
