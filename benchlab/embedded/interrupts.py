"""Being asked to stop: a flag that every wait looks at.

An exception raised by a signal handler could strike between a fork and the line that remembers the
new process. So the handler only writes to a pipe, and waiting is what raises.
"""

import contextlib
import os
import select
import signal
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """A signal asked this process to stop."""


class Interrupts:
    """While entered, SIGINT, SIGTERM and SIGHUP end the present and every later pause()."""

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._before = {each: signal.getsignal(each) for each in SIGNALS}
        for each in SIGNALS:
            # nohup's wish is kept; an ignored SIGINT is only what a shell does to `server &`
            if each is not signal.SIGHUP or self._before[each] is not signal.SIG_IGN:
                signal.signal(each, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        os.close(self._reading)
        os.close(self._writing)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._writing, b"!")

    def pause(self, seconds: float) -> None:
        """Sleep; raises Interrupted as soon as a signal came, now or earlier."""
        if select.select([self._reading], [], [], seconds)[0]:
            raise Interrupted
