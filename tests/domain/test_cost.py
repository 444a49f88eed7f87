"""No request costs more in a database of ten times the size: see `cost/gate.py`."""

import re

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection, transaction
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.urls import resolve

from runs.access.services import projects, tokens
from runs.archive import services
from runs.cells.services import summaries
from runs.compare.selectors.address import candidates
from runs.models import (
    Campaign,
    Cell,
    CellSummary,
    Change,
    HardwareProfile,
    Measurement,
    Metric,
    Revision,
    Run,
    SavedComparison,
    ServerEvent,
)
from runs.operations.services import partitions
from runs.published import reading
from runs.queue.services import leases
from runs.shared import queries
from runs.workloads.services import scenarios
from tests import factories
from tests.api import upload_bodies
from tests.domain.cost import addresses, axes, database, gate
from tests.each import check_each

pytestmark = pytest.mark.django_db
PUBLICATION = "wg1-2013"
# Pairs of campaigns.
FEW, MANY = 16, 160
# What a member has more of than others: lists with rows of an own private project.
OF_MEMBERS = (
    "/",
    "/campaigns/",
    "/changes/",
    "/servers/lab-1/",
    "/hardware/{hardware}/",
    "/api/v1/campaigns/",
    "/api/v1/changes/",
    "/api/v1/measurements/?metric=tps",
    "/api/v1/runs/",
    "/api/v1/runs/?server=lab-1",
    "/api/v1/runs/?version=16",
)
# The indexes without which a list reads more than it may: where there are several, each would do.
NEEDED = {
    "measurements/?metric=rare": ("measurement_by_metric",),
    "runs/?campaign=long": ("run_by_campaign",),
    "runs/?campaign=ci-long&server=lab-1": ("run_by_campaign_server",),
    "runs/?campaign=ci-long&validity=valid": ("run_by_campaign_validity",),
    "runs/?campaign=ci-long&version=16": ("run_by_campaign_major",),
    "runs/?hardware=rare": (
        "run_by_hardware",
        "run_public_by_hardware",
        "run_by_campaign_hardware",
    ),
    "runs/?origin=published": ("run_by_origin", "run_public_by_origin"),
    "runs/?state=lost": (
        "run_by_state",
        "run_public_by_state",
        "run_by_campaign_state",
        # Of waiting runs, and so a small one.
        "run_waiting_by_campaign",
    ),
    "runs/?validity=doubtful": (
        "run_by_validity",
        "run_public_by_validity",
        "run_by_campaign_validity",
    ),
    "runs/?version=9": ("run_of_nine", "run_by_major", "run_public_by_major"),
    "runs/?version=9.4.26": (
        "run_by_version",
        "run_public_by_version",
        "run_by_major",
        "run_public_by_major",
        "run_of_nine",
        "run_by_campaign_major",
    ),
}


@pytest.fixture
def read(monkeypatch):
    """The parameters that each address reads, by its name."""
    found = {}

    class Recording(QueryDict):
        read = set()  # of copies

        def get(self, key, default=None):
            self.read.add(key)
            return super().get(key, default)

        def getlist(self, key, default=None):
            self.read.add(key)
            return super().getlist(key, default)

    def given(request):
        made = Recording(request.META.get("QUERY_STRING", ""))
        made.read = found.setdefault(resolve(request.path).view_name, set())
        return made

    monkeypatch.setattr(WSGIRequest, "GET", property(given))
    return found


@pytest.mark.timeout(1800)
@gate.short_lists()
def test_no_request_reads_more_in_a_database_of_ten_times_the_size(settings, read):
    settings.RATE_ANONYMOUS = 0
    _forget_other_tests()
    scenarios.sync()
    services.load(files=[each for each in reading.files() if each.stem == PUBLICATION])
    database.grow(FEW)
    database.files()
    axes.base()
    _somebody_who_sees_the_same()
    _analyse()
    known = database.known()
    assert addresses.missing(known) == []

    small = gate.measure(known)
    assert addresses.unasked(known, read) == []
    of_member = gate.measure(known, OF_MEMBERS, "member")
    # Everybody's part of the same measurement.
    of_anybody = {
        address: cost
        for address, cost in small.items()
        if gate.is_open(address.format(**known))
    }
    for reader in (gate.ALIKE, gate.ADMINISTRATOR):
        of_reader = gate.measure(known, tuple(of_anybody), reader)
        assert of_reader.keys() == of_anybody.keys()
        dearer = gate.dearer(of_anybody, of_reader)
        assert dearer == [], reader
    database.grow(MANY)
    for axis in axes.AXES:
        if axis != axes.WITHOUT_FIGURES:
            axes.grow(axis)
    _analyse()
    grown = gate.grown(small, gate.measure(known), times=MANY / FEW)
    larger = gate.measure(known, OF_MEMBERS, "member")
    grown += [
        f"member: {each}" for each in gate.grown(of_member, larger, times=MANY / FEW)
    ]
    assert grown == [], "\n".join(grown)

    _a_claim_reads_a_small_index()
    assert [
        each for each in NEEDED if not _misses_its_indexes(each, small, known)
    ] == []


def _somebody_who_sees_the_same():
    person = User.objects.create_user(gate.ALIKE)
    project = projects.create(slug=gate.ALIKE, is_public=False)
    project.memberships.create(user=person, role="viewer")


def _analyse():
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    # As control does it.
    partitions.look_after()


def _forget_other_tests():
    """What they have rolled back is read as well: a small database would not be one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE runs_campaign, runs_server, runs_auditentry, runs_webhook CASCADE"
        )


def _a_claim_reads_a_small_index():
    """While many runs wait and few of millions of events say that one was passed over."""
    Run.objects.filter(campaign__slug="lab-00001").update(state="queued")
    connection.cursor().execute("ANALYZE runs_run, runs_runevent")
    with CaptureQueriesContext(connection) as captured:
        assert leases.standing(loaded=set()) == []
    assert sum(gate.buffers(each["sql"]) for each in captured.captured_queries) < 50


def _misses_its_indexes(asked, small, known):
    address = f"/api/v1/{asked}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {', '.join(NEEDED[asked])}")
        found = gate.measure(known, [address])
        transaction.set_rollback(True)
    return bool(gate.grown({address: small[address]}, found, times=1, least=0))


def test_an_upload_reads_the_same_however_often_its_cell_was_measured(client):
    token = tokens.create(name="ci", scopes=["upload"], project=projects.default()).text
    bearer = {"Authorization": f"Bearer {token}"}
    read = []
    for repeats in (summaries.EXACT, 40 * summaries.EXACT):
        body = upload_bodies.run(campaign=f"monitor-{repeats}")
        assert client.post("/api/v1/uploads/", body, "application/json", headers=bearer)
        cell = Cell.objects.get(campaign__slug=f"monitor-{repeats}")
        runs = Run.objects.bulk_create(
            Run(
                campaign=cell.campaign,
                cell=cell,
                repeat=each,
                position=0,
                state="finished",
            )
            for each in range(2, repeats + 1)
        )
        metrics = Metric.objects.filter(cellsummary__cell=cell)
        Measurement.objects.bulk_create(
            Measurement(run=run, metric=each, value=1)
            for run in runs
            for each in metrics
        )
        summaries.refresh_all(cell_ids=[cell.pk])
        analyse("runs_run", "runs_measurement", "runs_cell", "runs_cellsummary")
        before = _rows_read()
        answer = client.post(
            "/api/v1/uploads/", body, "application/json", headers=bearer
        )
        assert answer.status_code == 201
        read.append(_rows_read() - before)
    assert read[0] > 0
    assert read[1] <= gate.MOST_GROWTH * read[0] + gate.SLACK, read


def _rows_read() -> int:
    """How many rows of tables this transaction has read, by PostgreSQL's own count.

    An upload's statements are sent together, and write: none can be asked for its plan again.
    """
    rows = queries.rows(
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))"
        "  FROM pg_stat_xact_user_tables WHERE relname LIKE 'runs%%'",
        {},
    )
    return int(rows[0][0])


def _plan(statement: str) -> str:
    """As PostgreSQL prints it, with the rows that were read."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN ANALYZE {statement}".replace("%", "%%"), ())
        return "\n".join(line for (line,) in cursor.fetchall())


OF_A_CAMPAIGN = (
    "/api/v1/runs/?campaign=long",
    "/api/v1/measurements/?campaign=long&metric=tps",
    "/api/v1/measurements/?campaign=long",
)


def lengthen(campaign: Campaign, commits: int) -> None:
    """So many more cells with a finished run each."""
    before, tps = campaign.cells.count(), factories.metric("tps")
    cells = Cell.objects.bulk_create(
        Cell(campaign=campaign, ordinal=each, levels={"commit": each}, key=str(each))
        for each in range(before, before + commits)
    )
    runs = Run.objects.bulk_create(
        Run(campaign=campaign, cell=cell, repeat=1, position=0, state="finished")
        for cell in cells
    )
    Measurement.objects.bulk_create(
        Measurement(run=run, metric=tps, value=1) for run in runs
    )


def test_a_list_of_a_campaign_reads_its_newest_runs_by_an_index(client, settings):
    settings.RATE_ANONYMOUS = 0
    for slug in ("before", "long", "after"):
        lengthen(factories.campaign(slug, repeats=0), 1000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_run, runs_measurement, runs_cell, runs_campaign")

    def check(address: str) -> None:
        with CaptureQueriesContext(connection) as captured:
            assert len(client.get(address).json()["results"]) == 100
        statements = [each["sql"] for each in captured.captured_queries]
        # Cells and others may follow by their keys.
        *_others, page = (sql for sql in statements if " LIMIT " in sql)
        plan = _plan(page)
        read = re.search(
            r"Index Scan using run_by_campaign on runs_run .* rows=(\d+)", plan
        )
        assert read is not None, plan
        assert int(read[1]) <= 102, plan

    check_each(OF_A_CAMPAIGN, check)


def read_of(client, address: str, *tables: str) -> int:
    """The buffers of those statements of a request that name one of these tables."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    asked = [each["sql"] for each in captured.captured_queries]
    return sum(
        gate.buffers(sql) for sql in asked if any(name in sql for name in tables)
    )


def analyse(*tables: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(tables)}")


def test_a_list_of_a_campaign_reads_its_newest_changes_by_an_index(client, settings):
    settings.RATE_ANONYMOUS = 0
    tps = factories.metric("tps")
    for slug in ("before", "long", "after"):
        campaign = factories.campaign(slug, repeats=0)
        lengthen(campaign, 1000)
        values = {"metric": tps, "kind": "step", "ratio": 1, "before": 1, "after": 1}
        Change.objects.bulk_create(
            Change(run=run, cell_id=run.cell_id, **values)
            for run in campaign.runs.order_by("pk")
        )
    analyse("runs_change", "runs_cell", "runs_run")
    with CaptureQueriesContext(connection) as captured:
        assert (
            len(client.get("/api/v1/changes/?campaign=long").json()["results"]) == 100
        )
    plan = _plan(captured.captured_queries[-1]["sql"])
    read = re.search(
        r"Index Scan using change_by_campaign on runs_change .* rows=(\d+)", plan
    )
    assert read is not None, plan
    assert int(read[1]) <= 102, plan


@pytest.mark.parametrize("code", ["edited", "hardware_changed"])
def test_a_server_shows_its_newest_events_whatever_else_happened_to_it(client, code):
    server = factories.server("lab")
    few = "hardware_changed" if code == "edited" else "edited"
    for each in (few, code):
        ServerEvent.objects.bulk_create(
            ServerEvent(server=server, code=each, message=f"{each} " * 20)
            for _number in range(5000 if each == code else 3)
        )
    analyse("runs_serverevent")
    assert read_of(client, "/servers/lab/", "runs_serverevent") < 15


def test_the_newest_saved_comparisons_are_read_by_their_keys(client):
    SavedComparison.objects.bulk_create(
        SavedComparison(slug=f"of-{number}", title=str(number), query="s=x")
        for number in range(5000)
    )
    analyse("runs_savedcomparison")
    assert read_of(client, "/compare/", "runs_savedcomparison") < 15


def test_a_commit_is_found_in_a_campaign_however_many_have_measured_it(
    client, settings
):
    settings.RATE_ANONYMOUS = 0
    project = projects.default()
    commits = Revision.objects.bulk_create(
        Revision(project=project, sha=f"{number:040x}", ref="main")
        for number in range(100)
    )
    campaigns = Campaign.objects.bulk_create(
        Campaign(
            slug=f"ci-{number}",
            title="CI",
            project=project,
            origin="uploaded",
            scenario=factories.scenario(),
            factors={},
            state="finished",
        )
        for number in range(200)
    )
    Cell.objects.bulk_create(
        Cell(campaign=campaign, ordinal=1, levels={}, key=commit.sha, revision=commit)
        for campaign in campaigns
        for commit in commits
    )
    analyse("runs_cell", "runs_revision", "runs_campaign")
    sides = {
        "head": f"revision:{commits[51].sha}",
        "base": f"revision:{commits[50].sha}",
    }
    with CaptureQueriesContext(connection) as captured:
        answer = client.get("/api/v1/compare/", {"campaign": "ci-100", **sides})
    assert answer.status_code == 200
    asked = [each["sql"] for each in captured.captured_queries]
    plans = [_plan(sql) for sql in asked if "EXISTS" in sql and '"sha"' in sql]
    assert len(plans) == 3
    assert [
        each for each in plans if " using cell_by_revision on runs_cell" not in each
    ] == []


def test_campaigns_of_a_machine_are_found_by_its_runs_whatever_other_machines_there_are(
    client,
):
    machines = HardwareProfile.objects.bulk_create(
        HardwareProfile(fingerprint=name, name=name)
        for name in ("rare", *(f"other {number}" for number in range(4000)))
    )
    scenario, tps = factories.scenario(), factories.metric("tps")
    campaigns = Campaign.objects.bulk_create(
        Campaign(
            slug=f"lab-{number}",
            title="Lab",
            scenario=scenario,
            factors={},
            state="finished",
        )
        for number in range(len(machines))
    )
    cells = Cell.objects.bulk_create(
        Cell(campaign=campaign, ordinal=1, levels={}, key="") for campaign in campaigns
    )
    CellSummary.objects.bulk_create(
        CellSummary(cell=cell, metric=tps, n=1, median=1, minimum=1, maximum=1, mean=1)
        for cell in cells
    )
    Run.objects.bulk_create(
        Run(
            campaign_id=cell.campaign_id,
            cell=cell,
            hardware=machine,
            repeat=1,
            position=0,
            state="finished",
        )
        for cell, machine in zip(cells, machines, strict=True)
    )
    analyse(
        "runs_hardwareprofile",
        "runs_campaign",
        "runs_cell",
        "runs_cellsummary",
        "runs_run",
    )
    for origin, found in (("", True), ("executed", True), ("published", False)):
        address = f"/compare/?q=&in_hardware=rare&in_origin={origin}"
        assert (b"lab-0" in client.get(address).content) == found
        assert read_of(client, address, "runs_run") < 100


def commit_of_each_series(campaign: Campaign, commits: range) -> None:
    """A measured cell of three conditions for each of these commits."""
    tps = factories.metric("tps")
    cells = Cell.objects.bulk_create(
        Cell(
            campaign=campaign,
            ordinal=3 * commit + clients,
            levels={"clients": clients},
            series_key=f"clients={clients}",
            key=f"{commit} clients={clients}",
        )
        for commit in commits
        for clients in (1, 2, 3)
    )
    CellSummary.objects.bulk_create(
        CellSummary(cell=cell, metric=tps, n=1, median=1, minimum=1, maximum=1, mean=1)
        for cell in cells
    )


def test_series_of_a_history_are_offered_without_reading_its_commits(client):
    for slug in ("before", "found", "after"):
        commit_of_each_series(factories.campaign(slug, repeats=0), range(400))
    analyse("runs_cell", "runs_cellsummary")
    for more in (range(400, 401), range(401, 2500)):
        commit_of_each_series(Campaign.objects.get(slug="found"), more)
        (found,) = candidates.candidates("found", reader=AnonymousUser())
        assert (found.axis, found.more) == ("clients", 0)
        assert read_of(client, "/compare/?q=found", "json_build_array") < 100
