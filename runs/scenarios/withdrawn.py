"""Scenarios that no run can be queued of any more. Their campaigns are read as before.

A factor, parameter or metric keeps the title that it had.
"""

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.scenarios import pgbench_design
from runs.scenarios.definition import Parameter, Scenario, Sizes, Values
from runs.tools import known_metrics
from runs.wording import gettext_noop as _


class Withdrawn:
    """What a run meets that was queued before its scenario was withdrawn."""

    async def load(self, bench: Bench) -> None:
        """Raises TargetProblem `scenario_withdrawn`."""
        raise TargetProblem(
            _("This release does not execute the scenario any more."),
            code="scenario_withdrawn",
            remedy=_(
                "Cancel its runs, and queue a campaign of another scenario in slices."
            ),
        )

    async def warm(self, bench: Bench) -> None:
        """Nothing is loaded."""

    async def measure(self, bench: Bench) -> None:
        """Nothing is measured."""

    def sizes(self, parameters: Values) -> Sizes:
        """Nothing is stored."""
        return Sizes(disk_bytes=0)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """It ends at once."""
        return 0.0, 0.0


# Two clusters under the same load at the same time, of which only the ratio counted. Slices take
# out what disturbs both, too, and each has the machine for itself. That ratio differed by -23 to
# +26 % from one start of the servers to the next.
DUET = Scenario(
    slug="duet",
    title=_("Duet (withdrawn)"),
    description=_(
        "Two clusters answered the same reading load at the same time, and only the ratio of their "
        "throughputs counted. Campaigns in slices serve this better: each server has the machine "
        "for itself, in turn."
    ),
    source="Bulej, Horký, Tůma et al., ICPE 2020",
    factors=(pgbench_design.clients_factor(1),),
    parameters=(
        pgbench_design.scale(
            _("Of each of the two clusters; one unit is about 16 MB.")
        ),
        Parameter(
            "duration",
            _("Duration of a pair"),
            "s",
            default=5,
            minimum=1,
            maximum=3_600,
        ),
        Parameter(
            "pairs",
            _("Pairs of a run"),
            "",
            default=12,
            minimum=2,
            maximum=1_000,
        ),
    ),
    metrics=(
        known_metrics.DUET_RATIO,
        known_metrics.DUET_TPS,
        known_metrics.DUET_PARTNER_TPS,
        known_metrics.DUET_SPREAD,
    ),
    writes=False,
    procedure=Withdrawn(),
)
