"""How hypothesis searches here: the same examples each time, and no clock on a busy machine."""

from hypothesis import settings

settings.register_profile("unit", deadline=None, derandomize=True)
settings.load_profile("unit")
