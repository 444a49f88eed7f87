"""Page checksums: their cost for a read-only load.

Source: PGECons WG1 report 2013 (2.4, 2.5): the fixed-point reading load on a cluster that initdb
made with `--data-checksums`, compared with one without. A checksum is verified when a page is read
into the buffer pool, so the cost shows if the data do not all fit into shared_buffers; builds with
other compiler flags (2.5) are other installations.
"""

from dataclasses import replace

from runs.scenarios import fixed_point_read, pgbench_design
from runs.scenarios.definition import ClusterOptions, Quick, Requirement, Values
from runs.wording import gettext_noop as _

CHECKSUMS_SINCE = 90300
READ = fixed_point_read.SCENARIO


def cluster(_version_num: int, levels: Values) -> ClusterOptions:
    """initdb with or without checksums; if they are the default, they are turned off explicitly."""
    on = levels["checksums"] == "on"
    return ClusterOptions(
        initdb_options=("--data-checksums" if on else "--no-data-checksums",)
    )


SCENARIO = replace(
    READ,
    slug="page-checksums",
    title=_("Page checksums"),
    description=_(
        "What page checksums cost a reading load: the fixed-point range counts on clusters made "
        "with and without them. Choose a scale that does not fit into shared_buffers to see pages "
        "being verified."
    ),
    source="PGECons WG1 2013",
    factors=(
        pgbench_design.switch("checksums", _("Page checksums"), "off", "on"),
        pgbench_design.clients_factor(1, 2, 4),
    ),
    places={},
    quick=Quick({"scale": 10, "duration": 6}, {"clients": (1, 4)}, repeats=3),
    cluster=cluster,
    requires=(
        Requirement(
            CHECKSUMS_SINCE,
            _("page checksums came with PostgreSQL 9.3."),
            factor="checksums",
            level="on",
        ),
    ),
)
