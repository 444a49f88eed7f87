"""Sites: a server may name the place that reaches it, and a worker the sites it serves.

A server without a site is reached by every worker. A worker serves the sites of BENCHLAB_SITES, and
always the servers without one. A run, or a check, needs one worker that serves all its machines.
"""

from collections.abc import Collection, Iterable

from django.conf import settings
from redis.exceptions import RedisError

from runs.models import Server
from runs.operations.selectors import health_checks


def named(server_ids: Iterable[int]) -> list[str]:
    """The sites that these servers name, in order. One query."""
    of_them = Server.objects.filter(pk__in=list(server_ids)).exclude(site="")
    return sorted(set(of_them.values_list("site", flat=True)))


def serves(server_ids: Iterable[int]) -> bool:
    """Whether this process reaches all of these servers. One query."""
    return set(named(server_ids)) <= set(settings.SITES)


def unreached() -> set[int]:
    """All servers that this process does not reach. One query, however many runs ask."""
    elsewhere = Server.objects.exclude(site="").exclude(site__in=settings.SITES)
    return set(elsewhere.values_list("pk", flat=True))


def have_a_worker(sites: Collection[str]) -> bool:
    """Whether one live worker serves all of these sites; true where Redis cannot be asked."""
    if not sites:
        return True
    try:
        return any(
            set(sites) <= sites_of_worker
            for sites_of_worker in health_checks.sites_of_workers()
        )
    except (RedisError, OSError, ValueError):
        return True
