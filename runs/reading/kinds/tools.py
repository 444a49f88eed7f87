"""The output of a tool: `{"tool": its name, "files": {name: text, or {"base64": ...}}}`."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from runs.reading.readers import Request, stateless
from runs.tools import reader, registry
from runs.tools.adapter import Reading, UnreadableOutput

# All of them now: a process that reads opens no module of BenchLab after its limits are set.
_ADAPTERS = {adapter.name: adapter for adapter in registry.every()}


def _read(request: Request) -> Reading:
    adapter = _ADAPTERS[request["tool"]]
    files = {name: _content(content) for name, content in request["files"].items()}
    return reader.read(adapter, files)


def _content(content: str | bytes | Mapping[str, Any]) -> str | bytes:
    return b64decode(content["base64"]) if isinstance(content, Mapping) else content


READER = stateless(_read, Reading, (UnreadableOutput,))
