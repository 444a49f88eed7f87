"""Modules that are loaded when something of them is first used.

For what a library imports and BenchLab's programs hardly ever use: an `import` of it costs nothing
then, until an attribute is asked for. `from module import name` asks for one.
"""

import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_lock = threading.Lock()


class Later(ModuleType):
    """In place of a module: the first look at an attribute loads it.

    `homes` says of attributes which other module has them, after a colon by which name; a look at
    one of `calls` gives what loads the module when it is called.
    """

    def __init__(
        self, name: str, homes: Mapping[str, str] | None = None, calls: Collection[str] = ()
    ) -> None:
        super().__init__(name)
        self._homes = dict(homes or {})
        self._calls = frozenset(calls)

    def __getattr__(self, name: str) -> Any:
        """Called where the attribute is not here yet: import the module, and ask that one."""
        if name in self._calls:
            return partial(self._call, name)
        if home := self._homes.get(name):
            module, _by, other = home.partition(":")
            return getattr(import_module(module), other or name)
        if name.startswith("__") and (name != "__path__" or self._calls):
            # What the import system asks of any module; only a package has a path.
            raise AttributeError(name)
        loaded = self._load()
        found = getattr(loaded, name)
        self.__dict__.update(loaded.__dict__)
        return found

    def _call(self, name: str, /, *args: Any, **named: Any) -> Any:
        return getattr(self._load(), name)(*args, **named)

    def _load(self) -> ModuleType:
        with _lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        return import_module(self.__name__)


def load_later(*names: str) -> None:
    """Load these modules when they are first used. A module that is loaded already stays."""
    for name in names:
        sys.modules.setdefault(name, Later(name))


def load_when_called(name: str, *calls: str) -> None:
    """As `load_later`, for a module, no package, from which these are imported by name."""
    sys.modules.setdefault(name, Later(name, calls=calls))


def load_package_later(name: str, **homes: str) -> None:
    """As `load_later`, for a package whose modules work without it: they are imported alone.

    `homes` says of attributes which of its modules has them, after a colon by which name: they do
    not load the package. A package that is not there, or is loaded already, is left alone.
    """
    top, *rest = name.split(".")
    spec = find_spec(top)
    if name in sys.modules or spec is None or spec.submodule_search_locations is None:
        return
    package = Later(name, homes)
    package.__path__ = [str(Path(each, *rest)) for each in spec.submodule_search_locations]
    sys.modules[name] = package


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Let no import find these modules in the block, unless they are loaded already.

    For what a library takes where it is there, and BenchLab does not use.
    """
    hidden = set(names) - sys.modules.keys()
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # cannot be imported
    try:
        yield
    finally:
        for each in hidden:
            del sys.modules[each]
