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
    the first one being that of the chart. `words` find it besides its texts. `contradicts` says
    which of them contradict each other; `since` is the version that the chart compares with, where
    the question names one. `detail` goes on where the sentence, a title, ends. `unknown` is what
    nobody has measured beside versions; `first` is the version that brought what is asked about.
    """

    slug: str
    title: str
    question: str
    sentence: str
    scenarios: tuple[str, ...]
    rests_on: tuple[str, ...]
    words: str = ""
    contradicts: str = ""
    since: str = ""
    detail: str = ""
    unknown: str = ""
    first: str = ""


TOPICS = (
    Topic(
        "page-checksums",
        _("Page checksums"),
        _("What do page checksums cost?"),
        _(
            "Page checksums cost readers 1 to 4 % to 32 clients, 9 % at 80 and 17 % at 128 (9.3, "
            "80 cores); at 48 and 64 clients the cluster with them is 2.0 and 3.9 % ahead"
        ),
        ("page-checksums",),
        ("wg1-2013-2-3", "wg1-2013-2-4"),
        words="data_checksums initdb",
        unknown=_("What they cost updates, and what they cost as the default of 18."),
    ),
    Topic(
        "replication",
        _("Replication"),
        _("What does a standby cost?"),
        _(
            "One synchronous standby leaves 50.4 % (KVM guests) or 94.6 to 105.0 % (RDS) of the "
            "throughput, an asynchronous one 91.8 % (KVM guests)"
        ),
        ("replication",),
        (
            "wg1-2017-8-8",
            "wg1-2017-8-9",
            "wg1-2017-8-10",
            "postgresbench-2026-standbys",
        ),
        words="standby replica synchronous_commit remote_apply remote_write",
        contradicts=_(
            "The throughput with one synchronous standby is 50.4 % (KVM guests, 2017) and 94.6 to "
            "105.0 % (RDS). They are not the same: RDS was measured without standbys on other "
            "days, and its standby is not one of synchronous_standby_names."
        ),
        unknown=_("remote_apply and remote_write against on."),
    ),
    Topic(
        "storage",
        _("Storage"),
        _("What does a fast device bring, and what should be on it?"),
        _(
            "Everything on a PCIe SSD: 30 times the updates and 111 times the reads; one part "
            "alone 1.4 to 3.3 times"
        ),
        ("storage-placement", "storage-bandwidth"),
        ("wg1-2013-4-5", "wg1-2013-4-6", "wg1-2013-4-7"),
        words="ssd hdd nvme disk wal device",
        unknown=_(
            "NVMe devices against SSDs on one machine, and file systems against each other."
        ),
        detail=_(
            "On SATA SSDs everything brings 13 and 45 times, the WAL alone 2.7 times the updates."
        ),
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
        words="partition delete old planning",
        unknown=_(
            "How long planning takes with a thousand partitions in versions other than 15."
        ),
    ),
    Topic(
        "parallel-query",
        _("Parallel query"),
        _("Does parallel query make analytical queries faster?"),
        _(
            "Yes, most of all in memory: with four workers 22 analytical queries of version 13 "
            "take 150.6 s together instead of 280.1 s"
        ),
        ("parallel-query", "analytical-queries"),
        (
            "wg1-2017-6-8",
            "wg1-2017-6-9",
            "wg1-2017-6-11",
            "wg1-2017-6-19",
            "vondra-2024-cached",
            "vondra-2024-uncached",
        ),
        words="parallel worker analytical create index max_parallel_workers_per_gather "
        "max_parallel_workers max_parallel_maintenance_workers parallel_leader_participation",
        detail=_(
            "Not cached they take 290.8 s instead of 351.2 s. Not each query gains: TPC-DS query "
            "11 takes 9167.4 s with workers in version 10 and 8105.3 s without (server 2), less "
            "than in 9.5 and 9.6 either way; query 10 becomes thousands of times as fast, by "
            "another plan."
        ),
    ),
    Topic(
        "full-text-search",
        _("Full-text search"),
        _("What does an index for Japanese text bring, and cost?"),
        _(
            "PGroonga is the fastest to search long texts; an index makes searches of titles 70 to "
            "140 times as fast, and slows updates down; a logical replica takes that cost away"
        ),
        ("full-text-search",),
        ("wg1-2017-7-8", "wg1-2017-7-9", "wg1-2017-7-10"),
        words="pg_bigm pgroonga japanese tsvector gin",
        unknown=_("tsvector with GIN indexes."),
    ),
    Topic(
        "foreign-tables",
        _("Foreign tables"),
        _("What do foreign tables cost?"),
        _(
            "With one client a foreign table lowers the throughput of short joins by 92 to 93 %; "
            "updates lose 31 %, inserts 34 %"
        ),
        ("foreign-tables",),
        ("wg1-2017-9-3", "wg1-2017-9-4-2", "wg1-2017-9-4-3"),
        words="postgres_fdw fdw",
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
        words="nodes shards",
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
        words="windows linux freebsd macos kernel",
        unknown=_("FreeBSD, macOS, and the kernels of Linux against each other."),
    ),
    Topic(
        "cores",
        _("Processor cores"),
        _("Does throughput grow with the number of cores?"),
        _(
            "80 cores read 54.6 times as much as one (9.3), and peak at 80 clients in 9.2 and 9.3"
        ),
        ("cpu-cores",),
        (
            "wg1-2013-2-5",
            "wg1-2013-2-2",
            "smalldatum-2025-10-read",
            "smalldatum-2025-10-write",
        ),
        words="cpu processors scalability clients",
        detail=_(
            "On 48 cores 48 clients of 18 read 21.9 to 44.4 times as much as one, and write 2.8 "
            "to 39.5 times."
        ),
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
        words="hours stability vacuum bloat autovacuum autovacuum_vacuum_cost_delay "
        "vacuum_cost_delay",
    ),
    Topic(
        "where-time-goes",
        _("Where the time goes"),
        _("Why did updates get slower in version 10?"),
        _(
            "Updates wait for futex in version 10, where 9.6 waited for semop: POSIX semaphores, "
            "the likely cause, which nobody has tried without"
        ),
        ("profile",),
        ("wg1-2017-semaphore-stacks", "wg1-2017-strace-counts"),
        words="profile perf",
    ),
    Topic(
        "upgrades",
        _("From 13 to 18"),
        _("What does an upgrade from 13 to 17 or 18 bring?"),
        _(
            "From 13.23 to 17.7, cached and with 40 clients, reads reach 0.92 to 1.05 times, a "
            "list of keys 2.45 times, and writes 1.02 to 1.83 times"
        ),
        ("sysbench", "analytical-queries"),
        (
            "smalldatum-2025-11-write",
            "smalldatum-2025-11-read",
            "smalldatum-2025-12-write",
            "vondra-2024-cached",
        ),
        words="upgrade which version",
        since="13",
        detail=_(
            "From disk writes reach 0.74 to 1.11 times. 22 analytical queries, cached, take "
            "271.1 s together with 17 and 280.1 s with 13 without parallel workers, 160.7 s and "
            "150.6 s with four."
        ),
    ),
    Topic(
        "asynchronous-io",
        _("Asynchronous I/O"),
        _("What does the asynchronous I/O of 18 bring?"),
        _(
            "Of a table on disk io_uring scans 1.60 times as fast as sync, worker with 32 "
            "io_workers 1.26 times; point queries and most writes lose"
        ),
        ("asynchronous-io",),
        (
            "smalldatum-2025-12-io-read",
            "smalldatum-2025-12-io-write",
            "smalldatum-2025-09-io-write",
        ),
        words="aio io_method io_workers io_uring",
        first="18",
        detail=_("With data in memory it changes little: 0.97 to 1.03 times."),
    ),
    Topic(
        "processors",
        _("ARM and Intel"),
        _("Is PostgreSQL faster on ARM or on Intel?"),
        _(
            "On comparable machines only vector search has been published: pgvector 0.7.0 builds "
            "an HNSW index in 250 s on ARM and 388 s on Intel"
        ),
        ("processors", "vector-search"),
        ("vonng-2022-machines", "katz-2024-dbpedia-r7gd", "katz-2024-dbpedia-r7i"),
        words="arm64 aarch64 graviton x86 apple m1 cpu price cost",
        detail=_(
            "A laptop of 2021 with ARM reads 2.07 times and writes 2.80 times as much as one of "
            "2018 with Intel."
        ),
        unknown=_("What the same throughput costs on ARM and on Intel."),
    ),
    Topic(
        "vectors",
        _("Vectors"),
        _("How fast does PostgreSQL search vectors, and how long does an index take?"),
        _(
            "pgvector 0.7.0 builds an HNSW index in 250 s on ARM, where 0.5.0 took 7479 s, and in "
            "388 s on Intel (7443 s); it answers 253 and 255 queries per second, IVFFlat 8"
        ),
        ("vector-search",),
        ("katz-2024-dbpedia-r7gd", "katz-2024-dbpedia-r7i"),
        words="pgvector hnsw ivfflat embedding create index",
    ),
    Topic(
        "backups",
        _("Compression of backups"),
        _("How should a backup be compressed?"),
        _(
            "lz4 at level 1 is the fastest for pg_basebackup in 7 of 7 data sets; for pg_dump the "
            "levels 1 to 5 of zstd are best by time and size together"
        ),
        ("backup-compression",),
        ("moppel-2024-basebackup-fastest", "moppel-2024-pgdump-rank"),
        words="pg_dump pg_basebackup lz4 zstd gzip",
    ),
    Topic(
        "managed-services",
        _("Managed services"),
        _("How many transactions do managed services commit?"),
        _(
            "With 16 vCPUs 28344 TPS on local NVMe, and 7288 TPS on network storage of 16K IOPS"
        ),
        ("managed-services",),
        ("postgresbench-2026-services",),
        words="cloud rds aurora neon price cost",
        unknown=_(
            "A managed service against an own server on the same machine, and what each costs."
        ),
    ),
)
BY_SLUG = {topic.slug: topic for topic in TOPICS}
