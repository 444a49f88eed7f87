"""The tools of a campaign: the pgbench that puts the load on, and psql.

A tool is a version of its own. One pgbench serves every PostgreSQL of a campaign, so that the
servers are compared and not the tools; both versions are kept with each run.
"""

from dataclasses import dataclass

from runs.models import Installation, Server


@dataclass(frozen=True)
class Tools:
    """The installations whose pgbench and psql are used."""

    pgbench: Installation
    psql: Installation


def with_pgbench(server: Server) -> list[Installation]:
    """The installations of a server that have pgbench, from the newest pgbench to the oldest."""
    having = server.installations.filter(removed_at=None, pgbench_version_num__isnull=False)
    return list(having.order_by("-pgbench_version_num", "bindir"))


def tools_of(server: Server, client: Installation | None = None) -> Tools | None:
    """`client`'s pgbench, by default the newest, and the newest psql; None where one is missing."""
    psql = server.installations.filter(removed_at=None, has_psql=True)
    newest = psql.order_by("-version_num", "bindir").first()
    chosen = client or next(iter(with_pgbench(server)), None)
    return Tools(chosen, newest) if chosen and newest else None
