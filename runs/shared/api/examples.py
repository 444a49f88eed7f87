"""Examples of bodies and answers, as the description of the API has them."""

import json
from pathlib import Path
from typing import Any

EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
