"""The hash by which a content is stored once, in whichever order its names came."""

import hashlib
import json
from typing import Any

# Made once: json.dumps makes one for each call with options.
sorted_text = json.JSONEncoder(sort_keys=True).encode


def fingerprint(content: Any) -> str:
    """The SHA-256 of its JSON."""
    return hashlib.sha256(sorted_text(content).encode()).hexdigest()
