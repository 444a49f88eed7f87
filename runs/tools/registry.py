"""The adapters, found by their folders: each `runs/tools/<tool>/adapter.py` has an `ADAPTER`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from runs import tools
from runs.tools import known_metrics
from runs.tools.adapter import Adapter
from runs.tools.metrics import Metric


@cache
def every() -> tuple[Adapter, ...]:
    """All adapters, by name."""
    folders = sorted(
        module.name for module in pkgutil.iter_modules(tools.__path__) if module.ispkg
    )
    modules = (f"{tools.__name__}.{folder}.adapter" for folder in folders)
    return tuple(
        import_module(module).ADAPTER for module in modules if find_spec(module)
    )


def metrics() -> dict[str, Metric]:
    """The metrics that the adapters name, by name; those of a part of a run have further names."""
    return dict(known_metrics.METRICS)


def find(name: str) -> Adapter | None:
    """Return the adapter of a tool, "go-tpc" as well as "go_tpc"; None for one that has none."""
    wanted_name = name.strip().lower().replace("-", "_")
    return next((adapter for adapter in every() if adapter.name == wanted_name), None)
