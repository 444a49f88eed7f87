"""The process that reads: started by `runs.reading.process`, with nothing in its environment.

It knows no Django, no settings and no secret, for nobody has told it any. It answers one request
after the other until its input ends: each is a frame of a length (8 bytes) and so much JSON.
"""

import json
import os
import sys
import traceback
from typing import Any

from runs.reading import limits, readers, values
from runs.reading.limits import LENGTH
from runs.reading.refusals import refusal_of

_LONGEST_TRACEBACK = 4000


def answer(
    read: readers.Read, refusals: tuple[type[Exception], ...], request: readers.Request
) -> dict[str, Any]:
    """What a request is answered with, under the name of what came of it."""
    try:
        return {"answer": read(request)}
    except MemoryError:
        return {"limit": "memory"}
    except refusals as error:
        return {"refusal": refusal_of(error)}
    except Exception:  # noqa: BLE001 -- the process that has asked says it
        return {"fault": traceback.format_exc()[-_LONGEST_TRACEBACK:]}


def _answered(
    read: readers.Read, refusals: tuple[type[Exception], ...], request: bytes
) -> bytes:
    try:
        reply = values.to_json(answer(read, refusals, json.loads(request)))
    except MemoryError:
        reply = b'{"limit": "memory"}'
    except RecursionError:
        reply = b'{"limit": "depth"}'
    return reply if len(reply) <= limits.ANSWER_BYTES else b'{"limit": "answer"}'


def _received(count: int) -> bytes:
    parts = []
    while count:
        part = os.read(0, min(count, 2**20))
        if not part:
            raise SystemExit
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _send(content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(1, view) :]


def main(kind: str, *packages: str) -> None:
    """Answer requests of one kind until the input ends. Its modules are loaded before the limits.

    `packages` is the folder of NumPy, which the reader of pgbench's logs needs.
    """
    sys.path.extend(packages)
    reader = readers.find(kind)
    read = reader.begin()
    limits.keep_within(os.curdir, packages, reader.limits)
    while True:
        (length,) = LENGTH.unpack(_received(LENGTH.size))
        reply = _answered(read, reader.refusals, _received(length))
        _send(LENGTH.pack(len(reply)) + reply)
