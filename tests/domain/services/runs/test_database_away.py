"""A results database that does not come back while a worker has something to write."""

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from runs.execution.errors import Detached
from runs.execution.reporter import Findings
from runs.execution.steps import StepResult
from runs.services.runs import reporting
from runs.services.runs.reporting import DatabaseReporter
from tests import factories


@pytest.mark.django_db(transaction=True)
def test_the_worker_lets_go_of_its_run_and_no_error_of_its_own_ends_it(monkeypatch):
    """Another one takes it over then: what it has found still lies on its target."""
    reporter = DatabaseReporter(run=factories.run(), token=1)
    step = StepResult("load", ("pgbench",), "", 0, 1.0, 2.0, "", "")

    async def measure() -> None:
        """A step is stored while the run goes on, so its failure shows at the next phase."""
        await reporter.command("db", step)
        await reporter.phase("measuring")

    with monkeypatch.context() as away:
        away.setattr(reporting, "WAITS_SECONDS", (0.01, 0.01))
        away.setitem(connection.settings_dict, "PORT", "1")
        connection.close()
        with pytest.raises(Detached):
            async_to_sync(measure)()
        with pytest.raises(Detached):
            async_to_sync(reporter.found)(Findings())
    connection.close()
