"""Counts requests that failed by an error of BenchLab; in Redis, for all processes together."""

import logging

from redis.exceptions import RedisError

from runs.selectors.operations import signs

logger = logging.getLogger(__name__)


def count(*, address: str) -> None:
    """Count one. Raises nothing, since the cause may be that Redis is away."""
    try:
        signs.redis_client().hincrby(signs.HTTP_ERRORS, address, 1)
    except (RedisError, OSError) as error:
        logger.warning("an error is not counted: %s", error)
