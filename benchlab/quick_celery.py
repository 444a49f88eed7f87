"""A worker of Celery without its command line, which takes 3 MB and 0.1 s of each worker.

python -m benchlab.quick_celery -A benchlab worker --queues runs --pool threads
"""

import argparse
import gc
from importlib import import_module

from runs.later import load_later, without

# Loaded once and never freed: collections pass over it, so they may come often. What a run leaves
# in cycles then goes before it takes memory of its own.
THRESHOLDS = (5_000, 10, 10)


def load() -> None:
    """Import the worker and its pool.

    Without psutil, which Celery takes for a line about its memory.
    """
    load_later("urllib.request")  # xml.sax has it for documents on other machines
    with without("psutil"):
        for module in ("celery.apps.worker", "celery.concurrency.thread"):
            import_module(module)


def main() -> None:
    """Run a worker until it is told to end; the options are Celery's own."""
    options = _options()
    load()
    from celery.utils.nodenames import default_nodename, host_format  # noqa: PLC0415

    from benchlab.celery import app  # noqa: PLC0415

    worker = app.Worker(
        hostname=host_format(default_nodename(options.hostname)),
        queues=options.queues.split(","),
        pool_cls=options.pool,
        concurrency=options.concurrency,
        loglevel=options.loglevel.upper(),
    )
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    worker.start()
    raise SystemExit(worker.exitcode)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-A", "--app", choices=["benchlab"], default="benchlab")
    parser.add_argument("command", choices=["worker"])
    parser.add_argument("--queues", default="control,runs", help="separated by commas")
    parser.add_argument("--pool", choices=["threads"], default="threads")
    parser.add_argument("--concurrency", type=int, default=8, help="threads, at most")
    parser.add_argument("--loglevel", default="info")
    parser.add_argument("--hostname", help="%%h stands for the name of the host")
    return parser.parse_args()


if __name__ == "__main__":
    main()
