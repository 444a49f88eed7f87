"""Bodies of uploads, as the tests send them."""

import copy
import json

RUN = {
    "campaign": "nightly",
    "scenario": "tpcb-like",
    "levels": {"clients": 8},
    "started_at": "2026-01-31T02:00:00Z",
    "status": "finished",
    "measurements": [
        {"metric": "tps", "value": 1000.5, "unit": "tps", "direction": "higher"},
        {"metric": "latency_average", "value": 8.0, "unit": "ms", "direction": "lower"},
    ],
}


def run(*without, **changed):
    """The usual run with other fields."""
    made = copy.deepcopy(RUN) | changed
    return {name: value for name, value in made.items() if name not in without}


def changed(path, value):
    """The usual run with one value replaced: "measurements/0/value"."""
    made = run()
    *way, last = path.split("/")
    place = made
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[int(last) if last.isdigit() else last] = value
    return made


def text(body):
    return json.dumps(body)
