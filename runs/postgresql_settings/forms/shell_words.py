"""Settings in command lines: options of a server, and the tools of providers.

Words are those of a shell, as the standard library's shlex takes them. Source: the manual's page of
postgres; `aws rds modify-db-parameter-group`, `gcloud sql instances patch --database-flags`, `az
postgres flexible-server parameter set` and `avn service update` of their references.
"""

import csv
import re
import shlex
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass

from runs import foreign_json
from runs.postgresql_settings import conf_lines
from runs.postgresql_settings.catalogue import existence
from runs.postgresql_settings.conf_text import Fault
from runs.postgresql_settings.forms import json_documents, sql_text
from runs.postgresql_settings.forms.reading import FormReading, is_known

_OPTION = re.compile(r"\A(?P<name>[A-Za-z_][\w.-]*+)=(?P<value>.*+)", re.DOTALL)
_VARIABLE = re.compile(r"\A[A-Za-z_]\w*+=(?P<value>.*+)", re.DOTALL)
_HAS_OPTIONS = re.compile(
    r"""(?:^|[\s"'\[,=])-c["']?[\s,]*+["']?[A-Za-z_]++(?:\.\w++)?="""
    r"""|(?:^|[\s/])(?:postgres|postmaster|initdb)\b[^\n]{0,200}?\s--[a-z_.-]++[ =]"""
    r"""|\bPGOPTIONS=|(?:^|[\s/])pg_ctl\b[^\n]{0,200}?\s(?:-o|--options)\b"""
    r"""|^[ \t]*+(?:RUN |sudo )?(?:psql|echo|printf|sed|docker|avn|gcloud|aws|az|pg_conftool"""
    r"""|patronictl|supabase|helm|kubectl|curl|fly|flyctl|postgres|postmaster)\s"""
    r"""|\bpsql\b[^\n]{0,200}?\s-[a-zA-Z]*c\s|--database-flags|--ysql_pg_conf|ParameterName="""
    r"""|\bUpdate-AzPostgreSql|\bpg_createcluster\s|[?&]options=""",
    re.MULTILINE,
)
_LIST = re.compile(r'\[\s*+"')
_COMMENT_LINE = re.compile(r"^[ \t]*+#[^\n]*+", re.MULTILINE)
_AWS = re.compile(
    r"ParameterName=(?P<name>[\w.]++),\s*+ParameterValue=(?P<value>.*?)"
    r"(?:,\s*+ApplyMethod=[\w-]++)?,?",
    re.DOTALL,
)
# What postgres takes by a letter: of the ones with a value, and of those without.
_LETTERS = {
    "-B": "shared_buffers",
    "-N": "max_connections",
    "-S": "work_mem",
    "-p": "port",
    "-h": "listen_addresses",
    "-k": "unix_socket_directories",
}
_SWITCHES = {
    "-F": ("fsync", "off"),
    "-i": ("listen_addresses", "*"),
    "-l": ("ssl", "on"),
    "-fs": ("enable_seqscan", "off"),
    "-fi": ("enable_indexscan", "off"),
    "-fo": ("enable_indexonlyscan", "off"),
    "-fb": ("enable_bitmapscan", "off"),
    "-ft": ("enable_tidscan", "off"),
    "-fn": ("enable_nestloop", "off"),
    "-fm": ("enable_mergejoin", "off"),
    "-fh": ("enable_hashjoin", "off"),
}
_SERVERS = frozenset({"postgres", "postmaster"})
_CONTROL_FLAGS = frozenset({"-o", "--options"})
# YugabyteDB's flags: fields of CSV, each a line of its configuration.
_YUGABYTE = re.compile(r"--ysql_pg_conf(?:_csv)?=(?P<fields>.*+)", re.DOTALL)
# Of postgres and initdb, and of pg_createcluster.
_OPTION_FLAGS = frozenset({"-c", "--set", "--pgoption"})
_NAME_FLAGS = frozenset({"--name", "-n", "-name"})
_VALUE_FLAGS = frozenset({"--value", "-v", "-value"})
# A setting's name has two words; a line of a comment names others.
_NAME = re.compile(r"(?<![\w./-])[a-z]+(?:_[a-z]+)+(?![\w/])")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//) .*+", re.MULTILINE)
# Shells in shells, and no more.
_MOST_LEVELS = 4
# Each is looked at up to the end of the text.
_MOST_LISTS = 20
# In an address of a connection.
_URL_OPTIONS = re.compile(r"[?&]options=([^&\s\"']{1,2000}+)")
# What writes its argument to a file.
_WRITERS = frozenset({"echo", "printf"})
_SED_BEGINS = frozenset({"s/", "s|", "s#", "s,", "s@", "s!"})
_SED = re.compile(
    r"s([|/#,@!])(?:(?!\1)[^\\\n]|\\.){0,300}\1(?P<line>(?:(?!\1)[^\\\n]|\\.){0,300})\1"
)


@dataclass(frozen=True)
class Word:
    """A word of a shell, and its line."""

    line: int
    text: str


def read(text: str) -> FormReading | None:
    """The settings of commands; None for a text that is none, or that names others besides."""
    if _HAS_OPTIONS.search(text) is None:
        return None
    words = words_of(_URL_OPTIONS.sub(_unescaped, text))
    if words is None:
        return None
    reading = read_words(words)
    return reading if reading.settings and names_all(text, reading) else None


def _unescaped(options: re.Match[str]) -> str:
    """The options of a connection's address as a command has them."""
    return f" {urllib.parse.unquote_plus(options[1])} "


def names_all(text: str, reading: FormReading) -> bool:
    """Whether each setting that a text names, but for comments, is one that was read."""
    words = {name_match[0] for name_match in _NAME.finditer(_COMMENT.sub("", text))}
    values = " ".join(value for _line, _name, value in reading.settings)
    unread = words - {name.lower() for _line, name, _value in reading.settings}
    return not any(existence(word) and word not in values for word in unread)


def words_of(text: str) -> list[Word] | None:
    """The words of a shell's text, with lists of JSON (a Dockerfile's) as the words they are.

    None where a quote is not closed.
    """
    text = _COMMENT_LINE.sub("", text).replace("\\\n", " \n")
    words: list[Word] = []
    position = lists = 0
    for begin in _LIST.finditer(text):
        if begin.start() < position:
            continue
        if lists >= _MOST_LISTS:
            break
        lists += 1
        try:
            items, end = foreign_json.first(text, begin.start())
        except ValueError:
            break
        if not all(isinstance(item, str) for item in items):
            break
        line = text.count("\n", 0, begin.start()) + 1
        before = _split(
            text[position : begin.start()], text.count("\n", 0, position) + 1
        )
        if before is None:
            return None
        words += [*before, *(Word(line, item) for item in items)]
        position = end
    rest = _split(text[position:], text.count("\n", 0, position) + 1)
    return None if rest is None else words + rest


def _split(text: str, line: int) -> list[Word] | None:
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return _place_words(text, line, list(lexer))
    except ValueError:
        return None


def _place_words(text: str, line: int, words: Sequence[str]) -> list[Word]:
    """shlex counts the line behind a word that ends one: the place is where the word begins."""
    placed = []
    position = counted = 0
    line_of_word = line
    for word in words:
        begin = word[:8].split("'")[0].split('"')[0].split("\\")[0]
        place = text.find(begin, position) if begin else -1
        if place >= 0:
            line_of_word += text.count("\n", counted, place)
            counted, position = place, place + len(begin)
        placed.append(Word(line_of_word, word))
    return placed


def read_words(
    words: Sequence[Word], levels: int = 0, *, is_server: bool = False
) -> FormReading:
    """What the words of one or more commands set. `is_server`: they are options of postgres."""
    reading = FormReading()
    program = words[0].text.rpartition("/")[2] if words else ""
    is_avn, is_control = program == "avn", program == "pg_ctl"
    is_server = is_server or program in _SERVERS
    index = 0
    while index < len(words):
        following = (
            words[index + 1] if index + 1 < len(words) else Word(words[index].line, "")
        )
        if is_control and words[index].text in _CONTROL_FLAGS:
            options = words_of(following.text) or []
            reading.add(read_words(options, levels + 1, is_server=True))
            index += 2
            continue
        if is_server and (used := _take_letter(reading, words[index], following)):
            index += used
            continue
        if words[index].text in _WRITERS:
            _take_found(reading, _read_conf(following.text, following.line), 1)
            index += 2
            continue
        used = _take(reading, words[index], following, is_avn=is_avn)
        if used == 0:
            _take_inner(reading, words[index], following, levels)
            used = 1
        index += used
    reading.add(_read_named(words))
    return reading


def _take_letter(reading: FormReading, word: Word, following: Word) -> int:
    """Take an option that postgres has by a letter; how many words it has, else none."""
    text = word.text
    if switch := _SWITCHES.get(text):
        reading.settings.append((word.line, *switch))
        return 1
    name = _LETTERS.get(text[:2])
    if name is None:
        return 0
    attached = text[2:]
    reading.settings.append((word.line, name, attached or following.text))
    return 1 if attached else 2


def _take(reading: FormReading, word: Word, following: Word, *, is_avn: bool) -> int:
    """Take an option that sets something; how many words it has, none for another word."""
    text = word.text
    if (text in _OPTION_FLAGS or text.endswith("=-c")) and (
        option := _OPTION.fullmatch(following.text)
    ):
        _take_option(reading, word.line, option, is_avn=is_avn)
        return 2
    if text == "--database-flags" or text.startswith("--database-flags="):
        is_two = "=" not in text[:17]
        _take_flags(
            reading, word.line, following.text if is_two else text.partition("=")[2]
        )
        return 2 if is_two else 1
    option = _OPTION.fullmatch(following.text) if text == "-o" else None
    if option and existence(option["name"]):
        reading.settings.append((word.line, option["name"], option["value"]))
        return 2
    attached = text[6:] if text.startswith("--set=") else text[2:]
    is_short = text.startswith("-c") and text[2:3] not in {"", "="}
    if (is_short or text.startswith("--set=")) and (
        option := _OPTION.fullmatch(attached)
    ):
        _take_option(reading, word.line, option, is_avn=is_avn)
        return 1
    if text.startswith("--") and (used := _take_long(reading, word, following)):
        return used
    if text.startswith("-") and (option := _OPTION.fullmatch(following.text)):
        # `--config name=value`, and Helm's and Patroni's ways through their documents.
        name = _last_name(option["name"])
        if existence(name):
            reading.settings.append((word.line, name, option["value"]))
            return 2
    if aws := _AWS.fullmatch(text):
        reading.settings.append((word.line, aws["name"], aws["value"].strip("'")))
        return 1
    return 0


def _take_long(reading: FormReading, word: Word, following: Word) -> int:
    """Take a long option whose name is a setting's; how many words it has, else none."""
    if yugabyte := _YUGABYTE.fullmatch(word.text):
        for field in next(csv.reader([yugabyte["fields"]]), []):
            _take_found(reading, _read_conf(field, word.line), 1)
        return 1
    if option := _OPTION.fullmatch(word.text[2:]):
        name = option["name"].replace("-", "_")
        if existence(name) or "." in name:
            reading.settings.append((word.line, name, option["value"]))
            return 1
        return 0
    # fly's: two words at least, as those of one are of many programs.
    name = word.text[2:].replace("-", "_")
    if "_" in name and existence(name) and following.text[:1] not in {"", "-"}:
        reading.settings.append((word.line, name, following.text))
        return 2
    return 0


def _take_option(
    reading: FormReading, line: int, option: re.Match[str], *, is_avn: bool
) -> None:
    name, value = option["name"].replace("-", "_"), option["value"]
    if existence(_last_name(name)):
        name = _last_name(name)
    if is_avn:
        # Aiven's own names and units.
        name = name.removeprefix("pg.")
        if not existence(name):
            reading.leave_out(line, option[0])
            return
        value = f"{value}MB" if name == "work_mem" and value.isdigit() else value
    reading.settings.append((line, name, value))


def _last_name(path: str) -> str:
    """The setting's name behind the way through a document, such as `postgresql.parameters.`."""
    return path.rpartition("parameters.")[2]


def _take_flags(reading: FormReading, line: int, flags: str) -> None:
    mark = ","
    if flags[:1] == "^" and flags[2:3] == "^":
        mark, flags = flags[1], flags[3:]
    for flag in flags.split(mark):
        name, equals, value = flag.partition("=")
        if equals:
            reading.settings.append((line, name.strip(), value))
        elif flag.strip():
            reading.refuse_rest(line, flag)


def _take_inner(reading: FormReading, word: Word, following: Word, levels: int) -> None:
    """What stands in a word: another command, a statement, or lines of postgresql.conf."""
    text = word.text
    if levels >= _MOST_LEVELS or not set(text) & set(" \n=\t{"):
        return
    if sql_text.begins_script(text):
        form_reading = sql_text.read_script(text)
    elif text[:2] in _SED_BEGINS:
        for sed in _SED.finditer(text):
            line = re.sub(r"\\(.)", r"\1", sed["line"])
            _take_found(reading, _read_conf(line, word.line), 1)
        return
    elif text[:1] in {"{", "["} and (document := json_documents.read(text)) is not None:
        form_reading = document
    elif (inner := _VARIABLE.fullmatch(text)) and "-c" not in text and "--" not in text:
        is_conf = (
            following.text.startswith((">", "|")) or " = " in text or text.endswith("'")
        )
        form_reading = _read_conf(text, word.line) if is_conf else None
        _take_found(reading, form_reading, 1)
        return
    else:
        # A unit of systemd has a variable in a variable.
        value = inner["value"].removeprefix("PGOPTIONS=") if inner else text
        form_reading = _read_command(value, levels) or _read_conf(text, 1)
    _take_found(reading, form_reading, word.line)


def _take_found(reading: FormReading, found: FormReading | None, line: int) -> None:
    if found is not None:
        shifted = [
            (place + line - 1, name, value) for place, name, value in found.settings
        ]
        reading.add(FormReading(shifted, found.left_out, found.faults))


def _read_command(text: str, levels: int) -> FormReading | None:
    words = words_of(text)
    reading = read_words(words, levels + 1) if words and len(words) > 1 else None
    return reading if reading and reading.settings else None


def _read_conf(text: str, first_line: int) -> FormReading | None:
    """Lines that a command writes to a file; None if they are none of settings."""
    settings = []
    is_line = not isinstance(conf_lines.line(first_line, text), Fault)
    lines = [text] if is_line else text.replace("\\n", "\n").split("\n")
    for number, line in enumerate(lines, start=first_line):
        entry = conf_lines.line(number, line)
        if isinstance(entry, Fault):
            return None
        if entry is not None and is_known(entry.name):
            settings.append((number, entry.name, entry.value))
    return FormReading(settings) if settings else None


def _read_named(words: Sequence[Word]) -> FormReading:
    """`--name x --value y` of Azure, in PowerShell too, and `pg_conftool ... set x y`."""
    reading = FormReading()
    name: Word | None = None
    for index, word in enumerate(words):
        flag, equals, attached = word.text.partition("=")
        value = attached if equals else _text_at(words, index + 1)
        if flag.lower() in _NAME_FLAGS:
            name = Word(word.line, value)
        elif flag.lower() in _VALUE_FLAGS and name is not None:
            if existence(name.text) or "." in name.text:
                reading.settings.append((name.line, name.text, value))
            name = None
        elif word.text == "set" and _is_conftool(words[:index]):
            setting = (
                word.line,
                _text_at(words, index + 1),
                _text_at(words, index + 2),
            )
            reading.settings.append(setting)
    return reading


def _is_conftool(before: Sequence[Word]) -> bool:
    return any(word.text == "pg_conftool" for word in before[-4:])


def _text_at(words: Sequence[Word], index: int) -> str:
    return words[index].text if index < len(words) else ""
