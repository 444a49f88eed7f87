"""The topics, each with its question and an editor's sentence that answers it.

A sentence says no more than the conclusions of the tables that it rests on; a test looks up each of
its figures there.
"""

from dataclasses import dataclass

from runs.wording import gettext_noop as _


@dataclass(frozen=True)
class Topic:
    """What visitors ask about. Texts are English, to be translated.

    `scenarios` measure it. `rests_on` are the published campaigns that the sentence is made from,
    the first one being that of the chart.
    """

    slug: str
    title: str
    question: str
    sentence: str
    scenarios: tuple[str, ...]
    rests_on: tuple[str, ...]


TOPICS = (
    Topic(
        "page-checksums",
        _("Page checksums"),
        _("What do page checksums cost?"),
        _(
            "In 9.3 page checksums cost readers 1 to 4 %, and up to 17 % when all processors are "
            "busy"
        ),
        ("page-checksums",),
        ("wg1-2013-2-3", "wg1-2013-2-4"),
    ),
    Topic(
        "replication",
        _("Replication"),
        _("What does a standby cost?"),
        _(
            "One synchronous standby leaves half of the throughput (50.4 %); an asynchronous one "
            "costs 6 to 8 points"
        ),
        ("replication",),
        ("wg1-2017-8-8", "wg1-2017-8-9", "wg1-2017-8-10"),
    ),
    Topic(
        "storage",
        _("Storage"),
        _("What does a fast device bring, and what should be on it?"),
        _(
            "Everything on the SSD: 30 times the updates and 111 times the reads; one part alone "
            "brings 1.4 to 3.3 times"
        ),
        ("storage-placement", "storage-bandwidth"),
        ("wg1-2013-4-5", "wg1-2013-4-6", "wg1-2013-4-7"),
    ),
    Topic(
        "partitioning",
        _("Partitioning"),
        _("What do partitions bring?"),
        _(
            "TRUNCATE of a partition takes tens of milliseconds, where DELETE took 5 minutes and "
            "its VACUUM 57"
        ),
        ("partitioning",),
        ("wg1-2013-3-6", "wg1-2013-3-5", "wg1-2013-3-search"),
    ),
    Topic(
        "parallel-query",
        _("Parallel query"),
        _("Does parallel query make analytical queries faster?"),
        _(
            "Parallel query made one query of TPC-DS thousands of times as fast, by another plan, "
            "and another one of version 10 slower: 9167.4 s with it, 8105.3 s without"
        ),
        ("parallel-query",),
        ("wg1-2017-6-8", "wg1-2017-6-9", "wg1-2017-6-19"),
    ),
    Topic(
        "full-text-search",
        _("Full-text search"),
        _("What does an index for Japanese text bring, and cost?"),
        _(
            "An index makes searches of titles 70 to 140 times as fast, and slows updates down; a "
            "logical replica takes that cost away"
        ),
        ("full-text-search",),
        ("wg1-2017-7-8", "wg1-2017-7-9", "wg1-2017-7-10"),
    ),
    Topic(
        "foreign-tables",
        _("Foreign tables"),
        _("What do foreign tables cost?"),
        _(
            "Of the throughput of short joins at one client a foreign table costs 92 to 93 %; of "
            "updates it costs 31 %, of inserts 34 %"
        ),
        ("foreign-tables",),
        ("wg1-2017-9-3", "wg1-2017-9-4-2", "wg1-2017-9-4-3"),
    ),
    Topic(
        "block-size",
        _("Block size"),
        _("Do larger blocks make it faster?"),
        _(
            "Larger blocks bring hardly anything to loading and grouping; the join was faster with "
            "them, and why was not found out"
        ),
        ("block-size",),
        ("block-size-2012-load", "block-size-2012-group", "block-size-2012-join"),
    ),
    Topic(
        "scale-out",
        _("Scale-out"),
        _("What do several nodes bring?"),
        _(
            "Four nodes of Postgres-XC do 3.01 times the updates and 23.4 times the reads of one "
            "PostgreSQL, as the data come to fit into memory"
        ),
        ("scale-out",),
        ("wg1-2013-5-5", "wg1-2013-5-7"),
    ),
    Topic(
        "operating-systems",
        _("Operating systems"),
        _("Is PostgreSQL slower on Windows than on Linux?"),
        _(
            "Version 10 reads on Windows as on Linux; beyond the peak of updates Windows is lower "
            "and falls more"
        ),
        ("operating-systems",),
        ("wg1-2017-windows-linux-read", "wg1-2017-windows-linux-update"),
    ),
    Topic(
        "cores",
        _("Processor cores"),
        _("Does throughput grow with the number of cores?"),
        _("80 cores read 54.6 times as much as one"),
        ("cpu-cores",),
        ("wg1-2013-2-5",),
    ),
    Topic(
        "long-runs",
        _("Long runs"),
        _("Does throughput fall over days of load?"),
        _(
            "8.3 holds its throughput over 48 hours of constant load; autovacuum without a cost "
            "delay makes it drop for a while"
        ),
        ("long-run-stability",),
        ("stability-8-3-hot", "stability-8-3-delay", "stability-8-4"),
    ),
    Topic(
        "where-time-goes",
        _("Where the time goes"),
        _("Why did updates get slower in version 10?"),
        _(
            "Updates wait for futex in version 10, where 9.6 waited for semop: POSIX semaphores "
            "took the place of System V's"
        ),
        ("profile",),
        ("wg1-2017-semaphore-stacks", "wg1-2017-strace-counts"),
    ),
)
BY_SLUG = {topic.slug: topic for topic in TOPICS}
