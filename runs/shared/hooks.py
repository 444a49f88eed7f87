"""Where subjects that stand on top (`runs/on_top.py`) join in: what is below never imports them."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Hook(Generic[Function]):
    """Functions that subjects above have joined, in the order in which they did.

    A subject joins in its `joining.py`, as a decorator or by a call. Whoever owns the hook says
    what the functions are asked, and works without any.
    """

    def __init__(self) -> None:
        self._functions: list[Function] = []

    def join(self, function: Function) -> Function:
        """Ask this function as well from now on."""
        self._functions.append(function)
        return function

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions)
