"""What a new BenchLab measures first, on the machine on which it is started."""

from collections.abc import Callable

from runs.models import Server
from runs.shared.hooks import Hook

# Queues something on this server, and returns what in a few words; empty: nothing was asked for.
# Raises ServiceError.
FIRST_CAMPAIGNS: Hook[Callable[[Server], str]] = Hook()
