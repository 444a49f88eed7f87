"""The options of `pgbench -i` that people may give their own tables."""

import re
from dataclasses import dataclass

from runs.tools.pgbench import versions
from runs.tools.pgbench.versions import UnsupportedByToolError, require

# By option: the form of its value (None: it has none), and the pgbench that knows it first.
_KNOWN: dict[str, tuple[str | None, int]] = {
    "--unlogged-tables": (None, 90200),
    "--foreign-keys": (None, 90300),
    "--fillfactor": (r"[1-9][0-9]|100", 90200),
    "--partitions": (r"[1-9][0-9]{0,4}", versions.PARTITIONS),
    "--partition-method": (r"range|hash", versions.PARTITIONS),
}


@dataclass(frozen=True)
class InitOption:
    """One option as it is written on the command line."""

    text: str
    since: int


def read(text: str) -> tuple[InitOption, ...]:
    """The options in a line such as `--foreign-keys --fillfactor=80`.

    Raises UnsupportedByToolError, which names the word, for what may not be given here.
    """
    return tuple(_option(word) for word in text.split())


def for_tool(text: str, client_version: int) -> tuple[str, ...]:
    """The same for one pgbench. Raises UnsupportedByToolError if it is too old for one."""
    for each in (options := read(text)):
        require(client_version, each.since, each.text.partition("=")[0])
    return tuple(each.text for each in options)


def _option(word: str) -> InitOption:
    name, equals, value = word.partition("=")
    form, since = _KNOWN.get(name, (None, 0))
    if not since:
        raise UnsupportedByToolError(
            f"{word!r} is no option that may be given here: {', '.join(_KNOWN)} are."
        )
    if form is None and equals:
        raise UnsupportedByToolError(f"{name} has no value.")
    if form is not None and not re.fullmatch(form, value):
        raise UnsupportedByToolError(f"{name} needs a value of the form {form}.")
    return InitOption(word, since)
