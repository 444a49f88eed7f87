"""The tools of a campaign: the pgbench that generates the load, and psql.

A tool has a version of its own. One pgbench serves every PostgreSQL of a campaign, so that the
servers are compared and not the tools; each run stores both versions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs.grouping import group_by_key
from runs.models import Installation, Server
from runs.tools.pgbench import version_text


@dataclass(frozen=True)
class Tools:
    """The installations whose pgbench and psql are used."""

    pgbench: Installation
    psql: Installation


def installed(servers: Iterable[Server]) -> Mapping[int, list[Installation]]:
    """What is now installed on each of the servers, by their keys. One query."""
    installations = Installation.objects.filter(server__in=servers, removed_at=None)
    return group_by_key(
        (installation.server_id, installation) for installation in installations
    )


def having_pgbench(present: Iterable[Installation]) -> list[Installation]:
    """Those that have pgbench, from the newest pgbench to the oldest."""
    having = [
        installation
        for installation in present
        if installation.pgbench_version_num is not None
    ]
    return sorted(
        having,
        key=lambda installation: (
            -(installation.pgbench_version_num or 0),
            installation.bindir,
        ),
    )


def counterpart(
    client: Installation | None, present: Sequence[Installation]
) -> Installation | None:
    """`client` if it is present, else another installation with pgbench of its version.

    Preferably the same release, else the newest of the same major version.
    """
    if client is None or client.pgbench_version_num is None:
        return None
    number = client.pgbench_version_num
    having = having_pgbench(present)
    same = [
        installation
        for installation in having
        if installation.pgbench_version_num == number
    ]
    same_version = [
        installation
        for installation in having
        if version_text(installation.pgbench_version_num or 0) == version_text(number)
    ]
    same_installation = [
        installation for installation in same if installation.pk == client.pk
    ]
    return next(iter([*same_installation, *same, *same_version]), None)


def tools_among(
    present: Sequence[Installation], client: Installation | None = None
) -> Tools | None:
    """`client`'s pgbench, by default the newest, and the newest psql; None where one is missing."""
    psql = sorted(
        (installation for installation in present if installation.has_psql),
        key=lambda installation: (-installation.version_num, installation.bindir),
    )
    pgbench = [counterpart(client, present)] if client else having_pgbench(present)
    chosen = next(iter(pgbench), None)
    return Tools(chosen, psql[0]) if chosen and psql else None
