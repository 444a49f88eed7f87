"""Recorded arguments as words of a POSIX shell, with recorded folders replaced by variables."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# What may come before and after a folder in an argument: -k "/base/s", --data=/base/data
_BEFORE, _AFTER = r"(?<![\w./-])", r"(?=[/\s\"'@:,;)]|$)"
_ACTIVE_IN_HERE_DOCUMENT = re.compile(r"[\\$`]")


@dataclass(frozen=True)
class Folders:
    """Variables of the script by the folder, as recorded, that each stands for."""

    variables: Mapping[str, str]

    def word(self, argument: str) -> str:
        """One argument, quoted. Raises ValueError for a null byte, which no argument can carry."""
        if "\0" in argument:
            raise ValueError("an argument holds a null byte")
        pieces = self._parts(argument)
        return (
            "".join(
                f'"${name}"' if name else shlex.quote(text) for name, text in pieces
            )
            or "''"
        )

    def words(self, argv: Sequence[str]) -> str:
        """An argument list as one line."""
        return " ".join(self.word(argument) for argument in argv)

    def here_document(self, text: str) -> str:
        """Standard input as a here-document: `<<'END'` to its closing line, newline at the end."""
        lines = text.splitlines()
        delimiter = "END_OF_INPUT"
        while delimiter in lines:
            delimiter += "_"
        ended = text if not text or text.endswith("\n") else f"{text}\n"
        pieces = self._parts(ended)
        if not any(name for name, _text in pieces):
            return f"<<'{delimiter}'\n{ended}{delimiter}\n"
        inner = "".join(
            f"${{{name}}}" if name else _literal(piece) for name, piece in pieces
        )
        return f"<<{delimiter}\n{inner}{delimiter}\n"

    def _parts(self, text: str) -> list[tuple[str, str]]:
        """(variable, "") and ("", literal) in order."""
        if not self.variables:
            return [("", text)] if text else []
        # The longest first: a folder may be below another one.
        known_values = sorted(self.variables, key=len, reverse=True)
        pattern = f"{_BEFORE}({'|'.join(map(re.escape, known_values))}){_AFTER}"
        # re.split gives literal and folder in turn.
        split = re.split(pattern, text)
        pieces = [
            (self.variables[piece], "") if index % 2 else ("", piece)
            for index, piece in enumerate(split)
        ]
        return [piece for piece in pieces if piece != ("", "")]


def _literal(text: str) -> str:
    """Text that stays unchanged in a here-document whose variables are replaced."""
    return _ACTIVE_IN_HERE_DOCUMENT.sub(r"\\\g<0>", text)


def comment(text: str) -> str:
    """A comment line: texts of others cannot end it."""
    return f"# {' '.join(text.split())}"
