"""YAML of Patroni, CloudNativePG, Helm, Ansible, Compose, Kubernetes and others.

It is read by PyYAML's own parser, so that quotes, anchors, merges, lists and block scalars are what
YAML says. Values are the text as written: no number or truth is made of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from runs.postgresql_settings import conf_lines
from runs.postgresql_settings.conf_text import Entry, Fault
from runs.postgresql_settings.forms import named_values, pairs, shell_words
from runs.postgresql_settings.forms.reading import (
    FormReading,
    is_known,
    is_setting,
    known_name,
    sql_literal,
)
from runs.postgresql_settings.forms.shell_words import Word

# All below is a setting.
_BLOCKS = frozenset(
    {"parameters", "postgresql.conf", "databaseflags", "postgresqlparameters"}
)
_COMMANDS = frozenset({"command", "args", "entrypoint", "commands", "extraargs"})
# What a controller says of a cluster, or keeps beside what people write.
_STATE = frozenset({"status", "metadata"})
# Files that are no configuration of the server.
_OTHER_FILES = re.compile(r"(?:pg_hba|pg_ident|recovery\.done).*")
_SETTING = re.compile(r"^[ \t]*+[A-Za-z_][\w.]*+[ \t]*+=", re.MULTILINE)
_DEEP = re.compile(r"^[ \t?:-]{200}|(?:- ){50}", re.MULTILINE)
_MOST_BRACKETS = 2_000
# With aliases a small text can have many nodes.
_MOST_NODES = 20_000

_MERGE = "tag:yaml.org,2002:merge"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(text: str) -> FormReading | None:
    """The settings of a text of YAML; None for what is none, or has no setting.

    Where a block of settings is found, others outside it are not in force.
    """
    if (
        ":" not in text
        or _DEEP.search(text)
        or text.count("{") + text.count("[") > _MOST_BRACKETS
    ):
        return None
    try:
        documents = list(yaml.compose_all(text, Loader=_Loader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    walk = _Walk()
    try:
        for document in documents:
            if isinstance(document, yaml.MappingNode | yaml.SequenceNode):
                walk.node(document, _Place())
    except _TooMuchError:
        return None
    return walk.reading()


class _TooMuchError(Exception):
    """More nodes than a configuration has."""


@dataclass(frozen=True)
class _Place:
    """Where a node stands: its key, and whether all below it are settings."""

    key: str = ""
    is_block: bool = False


@dataclass
class _Walk:
    """A walk over documents, in their order."""

    of_blocks: FormReading = field(default_factory=FormReading)
    elsewhere: FormReading = field(default_factory=FormReading)
    of_files: list[FormReading] = field(default_factory=list)
    nodes: int = 0

    def reading(self) -> FormReading | None:
        """What is in force: of blocks before of what stands elsewhere."""
        if self.of_files and not self.of_blocks.settings:
            # The first: others are of replicas.
            return self.of_files[0]
        reading = self.of_blocks if self.of_blocks.settings else self.elsewhere
        if reading is self.of_blocks:
            for line, name, value in self.elsewhere.settings:
                reading.leave_out(line, f"{name}: {value}")
        return reading if reading.settings or reading.faults else None

    def node(self, node: yaml.Node, place: _Place) -> None:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise _TooMuchError
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, place)
        elif isinstance(node, yaml.SequenceNode):
            self._sequence(node, place)
        elif isinstance(node, yaml.ScalarNode):
            self._scalar(node, place)

    def _mapping(self, node: yaml.MappingNode, place: _Place) -> None:
        entries = list(_entries(node))
        keys = {key.lower() for key, _at, _value in entries}
        if row := _pair(entries):
            self._add(place, *row)
            return
        has_blocks = bool(keys & _BLOCKS)
        for key, line, value in entries:
            if key.lower() in _STATE and "spec" in keys:
                continue
            if place.is_block or (has_blocks and _is_list(value)):
                self._setting(key, line, value, is_block=True)
            elif not _is_block(key, value) and known_name(key):
                self._setting(key, line, value, is_block=False)
            else:
                self.node(value, _Place(key, is_block=_is_block(key, value)))

    def _sequence(self, node: yaml.SequenceNode, place: _Place) -> None:
        words = [
            Word(item.start_mark.line + 1, item.value)
            for item in node.value
            if isinstance(item, yaml.ScalarNode)
        ]
        if words and len(words) == len(node.value):
            if place.key.lower() in {"environment", "env"}:
                for word in words:
                    self._variable(word)
                return
            self.elsewhere.add(shell_words.read_words(words))
            return
        for item in node.value:
            self.node(item, place)

    def _scalar(self, node: yaml.ScalarNode, place: _Place) -> None:
        line = node.start_mark.line + 1
        if place.key.lower() == "line":
            # Ansible's lineinfile has one for each.
            entry = conf_lines.line(line, node.value)
            if isinstance(entry, Entry) and is_setting(entry.name):
                self.elsewhere.settings.append((line, entry.name, entry.value))
        elif place.key.lower() in _COMMANDS or " -c " in node.value:
            words = shell_words.words_of(node.value)
            moved = [Word(word.line + line - 1, word.text) for word in words or []]
            self.elsewhere.add(shell_words.read_words(moved))
        elif place.is_block or "\n" in node.value or place.key.endswith(".conf"):
            self._file(node, place)
        elif arguments := named_values.read(node.value):
            # Ansible's short form: `postgresql_set: name=work_mem value=32MB`.
            self.elsewhere.add(
                FormReading(
                    [(line, name, value) for _one, name, value in arguments.settings]
                )
            )

    def _file(self, node: yaml.ScalarNode, place: _Place) -> None:
        """Lines of postgresql.conf in a scalar."""
        if _OTHER_FILES.fullmatch(place.key) or not _SETTING.search(node.value):
            return
        reading = FormReading()
        is_folded = node.style in {"|", ">"}
        first = node.start_mark.line + (2 if is_folded else 1)
        for number, text in enumerate(node.value.split("\n"), start=first):
            entry = conf_lines.line(number, text)
            if isinstance(entry, Fault):
                reading.faults.append(entry)
            elif entry is not None:
                reading.settings.append((number, entry.name, entry.value))
        if any(is_setting(name) for _line, name, _value in reading.settings):
            self.of_files.append(reading)

    def _setting(
        self, key: str, line: int, value: yaml.Node, *, is_block: bool
    ) -> None:
        place = _Place(key, is_block)
        if isinstance(value, yaml.SequenceNode) and _is_list(value):
            text = ",".join(item.value for item in value.value)
            if is_known(key):
                self._add(place, line, known_name(key) or key, text)
            return
        if not isinstance(value, yaml.ScalarNode):
            self.node(value, place)
            return
        if _is_null(value):
            return
        name = key if is_block and not known_name(key) else known_name(key)
        if is_block and "\n" in value.value and not known_name(key):
            self._file(value, place)
        elif name:
            self._add(place, line, name, sql_literal(value.value.strip("\n")))

    def _variable(self, word: Word) -> None:
        name, equals, value = word.text.partition("=")
        if equals and known_name(name) and name.isupper():
            self.elsewhere.settings.append((word.line, known_name(name), value))

    def _add(self, place: _Place, line: int, name: str, value: str) -> None:
        reading = self.of_blocks if place.is_block else self.elsewhere
        reading.settings.append((line, name, value))


def _entries(node: yaml.MappingNode) -> Iterator[tuple[str, int, yaml.Node]]:
    """Keys, their lines and values; what is merged comes first, and own keys replace it."""
    key_names = {
        key.value for key, _value in node.value if isinstance(key, yaml.ScalarNode)
    }
    for key, value in node.value:
        if key.tag == _MERGE or key.value == "<<":
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for mapping in merged:
                if isinstance(mapping, yaml.MappingNode):
                    for name, line, inner in _entries(mapping):
                        if name not in key_names:
                            yield name, line, inner
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE and key.value != "<<":
            yield key.value, key.start_mark.line + 1, value


def _pair(entries: list[tuple[str, int, yaml.Node]]) -> tuple[int, str, str] | None:
    """A setting as a name and its value, each under a key of its own."""
    texts = {
        key.lower(): (line, value.value)
        for key, line, value in entries
        if isinstance(value, yaml.ScalarNode) and not _is_null(value)
    }
    name = next((texts[key] for key in pairs.NAMES if key in texts), None)
    value = next((texts[key] for key in pairs.VALUES if key in texts), None)
    if name is None or value is None:
        return None
    line, text_of_name = name[0], name[1].strip()
    if text_of_name.isupper() and "_" in text_of_name:
        # A variable of a container's environment.
        text_of_name = known_name(text_of_name)
    if not is_setting(text_of_name):
        return None
    unit = texts.get("unit", (0, ""))[1]
    return line, text_of_name, pairs.add_unit(value[1], unit)


def _is_block(key: str, value: yaml.Node) -> bool:
    """Whether all below is a setting: of a mapping, if it has one that is known."""
    if key.lower() not in _BLOCKS or not value.value:
        return False
    if not isinstance(value, yaml.MappingNode):
        return True
    return any(is_known(name) for name, _line, _inner in _entries(value))


def _is_list(value: yaml.Node) -> bool:
    return isinstance(value, yaml.SequenceNode) and all(
        isinstance(item, yaml.ScalarNode) for item in value.value
    )


def _is_null(value: yaml.ScalarNode) -> bool:
    return value.style is None and value.value in {"", "~", "null", "Null", "NULL"}
