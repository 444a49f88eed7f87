"""How the cache writes values: as JSON, which executes nothing when it is read."""

import json
from typing import Any


class JSONSerializer:
    """For Django's Redis cache, in place of pickle.

    Whoever can write to Redis can then change a counter, and no more. Values are what JSON has;
    a tuple comes back as a list. Raises TypeError for anything else.
    """

    def dumps(self, value: Any) -> bytes | int:
        """A whole number stays one, so that Redis can add to it."""
        return (
            value if type(value) is int else json.dumps(value, allow_nan=False).encode()
        )

    def loads(self, stored: bytes) -> Any:
        """The value. Raises ValueError where it is no JSON."""
        return json.loads(stored)
