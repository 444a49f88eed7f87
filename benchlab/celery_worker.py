"""How a process of Celery is started, whoever starts it."""

# A held run waits for its target: it costs two threads.
HELD_RUNS = 500


def arguments(*, queue: str, threads: int) -> list[str]:
    """What Python is given for a worker of this queue."""
    return [
        "-m",
        "celery",
        "-A",
        "benchlab",
        "worker",
        "--queues",
        queue,
        "--pool",
        "threads",
        "--concurrency",
        str(threads),
        # Workers say nothing to each other: PostgreSQL has the queue.
        "--without-heartbeat",
        "--without-gossip",
        "--without-mingle",
        "--loglevel",
        "info",
    ]
