"""The themes of the published observations: what each scenario of the archive is about.

A theme with a module here can be run; the others have data only, until they get one.
"""

from dataclasses import dataclass

from runs.wording import gettext_noop as _


@dataclass(frozen=True)
class Theme:
    """A scenario as the archive knows it."""

    slug: str
    title: str
    description: str


THEMES = (
    Theme(
        "fixed-point-read",
        _("Fixed-point read"),
        _("How many range counts a version answers, from one client to many."),
    ),
    Theme(
        "fixed-point-update",
        _("Fixed-point update"),
        _("How many single-row updates a version commits, from one client to many."),
    ),
    Theme(
        "page-checksums",
        _("Page checksums"),
        _("What page checksums cost a reading load, by compiler flags."),
    ),
    Theme(
        "cpu-cores",
        _("CPU cores"),
        _("How the throughput of a fixed number of clients grows with the number of cores."),
    ),
    Theme(
        "partitioning",
        _("Partitioning"),
        _("Inserting into, searching and maintaining a table in many partitions."),
    ),
    Theme(
        "storage-placement",
        _("Storage placement"),
        _("What it brings to put WAL, indexes, tables or everything on a fast device."),
    ),
    Theme(
        "scale-out",
        _("Scale-out"),
        _("Throughput of one database on one to several nodes."),
    ),
    Theme(
        "operating-systems",
        _("Operating systems"),
        _("The same load on several operating systems, and settings that depend on them."),
    ),
    Theme(
        "parallel-query",
        _("Parallel query"),
        _("Elapsed time of analytical queries by version and number of workers."),
    ),
    Theme(
        "full-text-search",
        _("Full-text search"),
        _("Searching Japanese text with several index types, alone and during inserts."),
    ),
    Theme(
        "replication",
        _("Replication"),
        _("What synchronous and asynchronous standbys cost the primary."),
    ),
    Theme(
        "foreign-tables",
        _("Foreign tables"),
        _("Reading and writing local tables against tables of other servers."),
    ),
    Theme(
        "block-size",
        _("Block size"),
        _("Loading and analysing data with blocks of 8, 16 and 32 kB."),
    ),
    Theme(
        "long-run-stability",
        _("Long-run stability"),
        _("Throughput over hours of load, with and without autovacuum and its cost delay."),
    ),
    Theme(
        "profile",
        _("Profile"),
        _("Where the time goes: functions on the processor, and system calls."),
    ),
    Theme(
        "storage-bandwidth",
        _("Storage bandwidth"),
        _("What a storage device writes on its own, by the interval between two fsyncs."),
    ),
)
