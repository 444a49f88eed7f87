"""The project: settings, URLs, Celery and the embedded services."""

import gc
import os

# numpy's matrices are small: a thread for each processor waits actively for the others, which costs
# more than the work, and memory. Read when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A full collection of all that is loaded takes 100 to 200 ms, in which nobody else of the process
# works, and by Python's own thresholds it is a seventh of each program's start: it comes seldom.
THRESHOLDS = (20_000, 20, 20)
gc.set_threshold(*THRESHOLDS)

from runs.later import load_later, load_package_later, without  # noqa: E402 - as below

# Celery takes click's exceptions, redis a client for asyncio, and Django sqlparse for scripts of
# many statements: 2 MB that are loaded where somebody uses them.
load_package_later("click", ClickException="click.exceptions")
load_package_later("redis.asyncio")
load_later("sqlparse")

with without("yaml"):  # messages are JSON
    from benchlab.celery import app as celery_app  # what this loads is the first to gain

__all__ = ("celery_app",)
