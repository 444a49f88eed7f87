"""Cutting texts of both languages into words for a full-text search.

English goes to PostgreSQL's own configuration, which knows stems and stop words. Japanese has no
blanks between words, so its runs of characters are cut into overlapping pairs. Each pair is
written in ASCII, so that the database's locale does not decide what a letter is.
"""

import re
import unicodedata
from collections.abc import Iterable

CONFIG = "english"
LONG_VOWEL = "ー"
JAPANESE = re.compile(r"[぀-ヿ㐀-鿿々]+")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
# "PostgreSQL 14", "pg 9.6", "バージョン14", "version 9.6.3", or a bare 9.6.
VERSION = re.compile(
    r"\b(?:postgresql|postgres|pg|version|バジョン)\s*v?(\d{1,2}(?:\.\d{1,2}){0,2})(?![\d.]*\d)"
)
BARE_VERSION = re.compile(r"(?<![\d.])([89]\.\d)(?![\d.])")
# How tables name the versions that they are about.
NAMED_VERSION = re.compile(r"^version(\d+(?:\.\d+)*)$")


def tokens(texts: Iterable[str]) -> str:
    """All words of these texts, once each, for `to_tsvector`."""
    return " ".join(dict.fromkeys(token for text in texts for token in _tokens(text)))


def query(text: str) -> str:
    """The words of a search, for `plainto_tsquery`: all of them must occur.

    A version is searched as such: "PostgreSQL 14" finds what is about 14, not each occurrence of
    a 14.
    """
    plain = normal(text)
    tokens: list[str] = []
    for pattern in (VERSION, BARE_VERSION):
        tokens += [version_token(match[1]) for match in pattern.finditer(plain)]
        plain = pattern.sub(" ", plain)
    return " ".join(dict.fromkeys([*tokens, *_tokens(plain)]))


def stands_alone(query: str, title: str) -> bool:
    """Whether a query's Japanese words are separate in a title: 同期 is the opposite of 非同期."""
    plain = normal(title)
    runs = JAPANESE.findall(normal(query))
    return all(
        re.search(rf"(?<![\u3400-\u9fff]){re.escape(run)}", plain) for run in runs
    )


def has_all(query: str, title: str) -> bool:
    """Whether each word of the query stands in the title, also as a part of a word."""
    plain = normal(title)
    return all(word in plain for word in normal(query).split())


def weigh_titles(query: str) -> str:
    """The words of a query for `to_tsquery`, all of them with the weight of titles."""
    quoted = (word.replace("\\", "\\\\").replace("'", "''") for word in query.split())
    return " & ".join(f"'{word}':A" for word in quoted)


def normal(text: str) -> str:
    """One spelling for several: width and case of letters, サーバー and サーバ, 1,000 and 1000."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace(LONG_VOWEL, "")
    return THOUSANDS.sub("", plain)


def version_token(version: str) -> str:
    """A major version as one word: 9.6.3 is version9p6, 14.1 is version14."""
    numbers = version.split(".")
    major = numbers[:2] if int(numbers[0]) < 10 else numbers[:1]
    return "version" + "p".join(major)


def _tokens(text: str) -> list[str]:
    plain = normal(str(text))
    if match := NAMED_VERSION.match(plain):
        return [version_token(match[1])]
    pairs = [pair for run in JAPANESE.findall(plain) for pair in _pairs(run)]
    return [*JAPANESE.sub(" ", plain).split(), *pairs]


def _pairs(run: str) -> list[str]:
    cut = [run[index : index + 2] for index in range(len(run) - 1)] or [run]
    return ["j" + "".join(f"{ord(letter):04x}" for letter in pair) for pair in cut]
