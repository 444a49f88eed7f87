"""The output of a tool: `{"tool": its name, "files": {name: text, or {"base64": ...}}}`.

Without a name the tool is recognised from what it has printed.
"""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from runs.reading.readers import Request, stateless
from runs.tools import reader, registry
from runs.tools.adapter import Reading, UnreadableOutput
from runs.wording import gettext_noop as _

# All of them now: a process that reads opens no module of BenchLab after its limits are set.
_ADAPTERS = {adapter.name: adapter for adapter in registry.every()}


def _read(request: Request) -> Reading:
    files = {name: _content(content) for name, content in request["files"].items()}
    tool = request["tool"] or reader.tool_of(files)
    if not tool:
        raise UnreadableOutput(
            "unknown_tool",
            _("No tool that is known here has printed this."),
            _(
                "Choose the tool; the figures of another one can be sent as lines "
                "(tps=14203.5 tps)."
            ),
        )
    return reader.read(_ADAPTERS[tool], files)


def _content(content: str | bytes | Mapping[str, Any]) -> str | bytes:
    return b64decode(content["base64"]) if isinstance(content, Mapping) else content


READER = stateless(_read, Reading, (UnreadableOutput,))
