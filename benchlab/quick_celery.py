"""The command `celery` without its console, which takes 9 MB and 0.1 s of each worker.

python -m benchlab.quick_celery -A benchlab worker --queues runs --pool threads
"""

import sys
from types import ModuleType


def main() -> None:
    """Run the command; `celery amqp`, which is the console, then has none."""
    console = ModuleType("click_repl")
    console.register_repl = lambda *_arguments, **_options: None  # type: ignore[attr-defined]
    sys.modules.setdefault("click_repl", console)
    from celery.__main__ import main as celery  # noqa: PLC0415 - it imports the console

    celery()


if __name__ == "__main__":
    main()
