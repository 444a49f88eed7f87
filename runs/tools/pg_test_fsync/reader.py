"""Of pg_test_fsync's output what compares wal_sync_method: the rate of one 8 kB write."""

import re

_SECTION = re.compile(r"^Compare file sync methods using one ", re.MULTILINE)
_RATE = re.compile(r"^\s+([a-z_]+)\s+([0-9]+\.[0-9]+) ops/sec", re.MULTILINE)


def one_write(text: str) -> dict[str, float]:
    """Each method of the first section with its rate; what is `n/a` there is left out."""
    begin = _SECTION.search(text)
    if begin is None:
        return {}
    end = text.find("\nCompare ", begin.end())
    section = text[begin.end() : end if end >= 0 else len(text)]
    return {method: float(rate) for method, rate in _RATE.findall(section)}
