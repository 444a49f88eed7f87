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

from runs.later import load_later, load_package_later, load_when_called  # noqa: E402

# Celery takes exceptions of click and of AMQP, redis clients for asyncio and for clusters, Django
# sqlparse for scripts of many statements, the description of the API what its tests ask with, and
# the login by security keys the list of all public suffixes: 6 MB that are loaded where somebody
# uses them.
load_package_later(
    "amqp",
    **dict.fromkeys(("ChannelError", "ConnectionError", "ResourceError"), "amqp.exceptions"),
    RecoverableConnectionError="amqp.exceptions",
)
load_package_later("click", ClickException="click.exceptions")
load_package_later("redis.asyncio")
load_later("sqlparse")
load_when_called("fido2.rpid", "verify_rp_id")
load_when_called("redis.cluster", "RedisCluster")
load_when_called("rest_framework.test", "APIRequestFactory")
