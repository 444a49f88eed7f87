"""Features that later versions enable by default, turned off so that versions compare."""

NO_PARALLEL_SINCE = 90600
NO_JIT_SINCE = 110000


def comparable(version_num: int) -> dict[str, str]:
    """Serial plans without JIT, for queries that were measured before either existed."""
    settings = {}
    if version_num >= NO_PARALLEL_SINCE:
        settings["max_parallel_workers_per_gather"] = "0"
    if version_num >= NO_JIT_SINCE:
        settings["jit"] = "off"
    return settings
