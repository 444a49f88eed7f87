"""The themes of the published observations, and the question of each.

One with a scenario here can be run; the others have data only, until they get one.
"""

from runs.scenarios import registry
from runs.wording import gettext_noop as _

THEMES = {
    "fixed-point-read": _(
        "How many range counts a version answers, from one client to many."
    ),
    "fixed-point-update": _(
        "How many single-row updates a version commits, from one client to many."
    ),
    "page-checksums": _("What page checksums cost a reading load, by compiler flags."),
    "cpu-cores": _(
        "How the throughput of a fixed number of clients grows with the number of cores."
    ),
    "partitioning": _(
        "Inserting into, searching and maintaining a table in many partitions."
    ),
    "storage-placement": _(
        "What it brings to put WAL, indexes, tables or everything on a fast device."
    ),
    "scale-out": _("Throughput of one database on one to several nodes."),
    "operating-systems": _(
        "The same load on several operating systems, and settings that depend on them."
    ),
    "parallel-query": _(
        "Elapsed time of analytical queries by version and number of workers."
    ),
    "full-text-search": _(
        "Searching Japanese text with several index types, alone and during inserts."
    ),
    "replication": _("What synchronous and asynchronous standbys cost the primary."),
    "foreign-tables": _(
        "Reading and writing local tables against tables of other servers."
    ),
    "block-size": _("Loading and analysing data with blocks of 8, 16 and 32 kB."),
    "long-run-stability": _(
        "Throughput over hours of load, with and without autovacuum and its cost delay."
    ),
    "profile": _("Where the time goes: functions on the processor, and system calls."),
    "storage-bandwidth": _(
        "What a storage device writes on its own, by the interval between two fsyncs."
    ),
    "sysbench": _(
        "How many queries of many small loads a version answers, reading and writing."
    ),
    "analytical-queries": _(
        "Elapsed time of many analytical queries, of loading and of building indexes."
    ),
    "processors": _("The same load on machines with different processors."),
    "asynchronous-io": _("What io_method and io_workers bring to reading and writing."),
    "vector-search": _("Searching vectors: recall, throughput and index builds."),
    "backup-compression": _(
        "Time and size of backups by method and level of compression."
    ),
    "managed-services": _(
        "What managed services commit under one load, by size and service."
    ),
}
# Of themes without a scenario of that title.
_TITLES = {
    "partitioning": _("Partitioning"),
    "profile": _("Profile"),
    "sysbench": _("Small loads of sysbench"),
    "analytical-queries": _("Analytical queries"),
    "processors": _("Processors"),
    "asynchronous-io": _("Asynchronous I/O"),
    "vector-search": _("Vector search"),
    "backup-compression": _("Compression of backups"),
    "managed-services": _("Managed services"),
}


def title_of(theme: str) -> str:
    """The theme's title, untranslated."""
    return _TITLES.get(theme) or registry.get(theme).title
