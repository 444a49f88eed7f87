"""CPU cores: how the throughput of a fixed number of clients grows with the number of cores.

Source: PGECons WG1 report 2013 (2.6, table 2.5, figure 2.4): the fixed-point reading load of 80
clients on 1 to 80 cores, one run each. How the cores were limited is not printed; here the
server's processes get an affinity (taskset), and the idle time is that of their cores only, since
the printed 0.00 % at one of 80 cores cannot be otherwise. The data are loaded once; each run
starts the server on its cores and prewarms, so that no level reads from the disk for the others.

A pgbench on the same machine has no cores of its own unless the treatment gives it some
(`pgbench_cpus`), which PostgreSQL then leaves alone at every level.
"""

from runs.scenarios import fixed_point_read, pgbench_design
from runs.scenarios.common_factors import CORES, too_few_clients
from runs.scenarios.definition import ClusterOptions, Quick, Scenario, Values
from runs.scenarios.metrics import PGBENCH
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

READ = fixed_point_read.SCENARIO


def cluster(version_num: int, _levels: Values) -> ClusterOptions:
    """No parallel plans: with other cores the planner must not choose another way.

    They would also put several processes on the work of one client.
    """
    return ClusterOptions(settings=pgbench_design.serial(version_num))


SCENARIO = Scenario(
    slug="cpu-cores",
    title=_("CPU cores"),
    description=_(
        "How the throughput of a fixed number of clients grows with the number of cores that "
        "PostgreSQL may use: the reading load of the fixed-point observation, with the idle time "
        "of just those cores."
    ),
    source="PGECons WG1 2013",
    factors=(CORES,),
    parameters=(
        *READ.parameters,
        pgbench_design.clients(
            8, _("The same at each number of cores, and no fewer. The report used 80.")
        ),
    ),
    metrics=(*PGBENCH, known_metrics.CPU_IDLE),
    writes=False,
    procedure=READ.procedure,
    has_pgbench_tables=True,
    cluster=cluster,
    objection=too_few_clients,
    quick=Quick(
        parameters={"scale": 10, "duration": 10, "clients": 8}, levels={"cores": (1, 2)}
    ),
)
