"""A load on two real versions, from its campaign to its answer, and a trial of a statement."""

from dataclasses import replace

import pytest

from runs.access.services import projects
from runs.loads.selectors.causes import Cause
from runs.loads.services import loads, results, trials
from runs.loads.services.loads import Asked, Brought
from runs.models import Run
from runs.statements import trial
from runs.statements.put_back import PutBack
from runs.workloads.services import scenarios
from tests.ssh.test_slices import overlapping, slices_of, work_off

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

STATEMENTS = """
SELECT abalance FROM pgbench_accounts WHERE aid = 4711;
SELECT casefold('A function of 18');
UPDATE pgbench_branches SET bbalance = 1 WHERE bid = 1;
"""


@pytest.fixture
def server(racks, binaries):
    (only,) = racks(1, [binaries.postgresql16, binaries.postgresql18])
    return only


@pytest.fixture
def load(server):
    scenarios.sync()
    return loads.create(
        name="Shop",
        brought=Brought(statements=STATEMENTS, scale=1),
        project=projects.default(),
        by=None,
    )


@pytest.fixture
def measured(server, load):
    """Four rounds of both versions."""
    asked = Asked(
        server=server,
        installations=list(server.installations.filter(bindir__in=server.bindirs)),
        rounds=4,
        seconds=1,
        clients=2,
        statement_timeout=10,
        disk_mb=50,
    )
    campaign = loads.queue(load=load, asked=asked, by=None)
    work_off(server.pk)
    campaign.refresh_from_db()
    assert unfinished(campaign) == []
    # Who else uses the machine of the tests is no matter here.
    valid = Run.Validity.VALID
    campaign.runs.update(state=Run.State.FINISHED, validity=valid)
    return campaign


def unfinished(campaign):
    """Why runs have not ended with a result; an invalid one is withdrawn."""
    states = {Run.State.FINISHED, Run.State.WITHDRAWN}
    return [run.message for run in campaign.runs.all() if run.state not in states]


def test_a_load_is_answered_and_a_statement_of_it_is_tried(server, load, measured):
    answer = results.answer(load, measured)
    assert answer.all_rounds == 4
    row = next(row for row in answer.rows if "casefold" in row.unit.text)
    assert row.why_not.startswith(f"On {answer.base}: It calls a function")
    # In the first round 18 draws it, too; then it is left out on both.
    assert (answer.whole.clients, answer.whole.rounds) == (2, 3)
    assert any("left out of the load as a whole" in note for note in answer.whole_notes)

    number = next(row.unit.number for row in answer.rows if "aid" in row.unit.text)
    settings = ("enable_indexscan", "enable_bitmapscan")
    cause = Cause(tuple(PutBack(name, None, "on", "off") for name in settings))
    rows = tuple(replace(row, cause=cause) for row in answer.rows)
    campaign = trials.queue(
        load=load,
        measured=measured,
        answer=replace(answer, rows=rows),
        statement=number,
        by=None,
    )
    work_off(server.pk)
    campaign.refresh_from_db()
    assert unfinished(campaign) == []
    slices = slices_of(campaign)
    assert len(slices) == 12 * (1 + 5)
    assert overlapping(slices) == []
    (found,) = results.find_trials(load, measured)
    assert found.has_ended
    assert found.arms.keys() == {"A", *trial.arms(trial.level(found.put_back))}
    # Without its index the statement reads the table.
    effect = found.proof.all.ratio
    assert effect.low > 2
