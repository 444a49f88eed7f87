"""The command `celery` without its console, which takes 9 MB and 0.1 s of each worker.

python -m benchlab.quick_celery -A benchlab worker --queues runs --pool threads
"""

import sys
from types import ModuleType


def load() -> None:
    """Import the command and its worker; `celery amqp`, which is the console, then has none."""
    console = ModuleType("click_repl")
    console.register_repl = lambda *_arguments, **_options: None  # type: ignore[attr-defined]
    sys.modules.setdefault("click_repl", console)
    import celery.__main__  # noqa: PLC0415 - it imports the console
    import celery.apps.worker  # noqa: PLC0415
    import celery.bin.celery  # noqa: PLC0415
    import celery.concurrency.thread  # noqa: F401, PLC0415


def main() -> None:
    """Run the command."""
    load()
    from celery.__main__ import main as celery  # noqa: PLC0415

    celery()


if __name__ == "__main__":
    main()
