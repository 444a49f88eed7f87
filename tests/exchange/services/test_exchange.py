"""Whole projects as files: what is exported comes back as it was."""

import gzip
import hashlib
import io
import json
import shutil
import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import Value
from django.db.models.functions import Concat
from django.test import override_settings

from runs import export_reader
from runs.access.services import projects
from runs.exchange import services
from runs.exchange.selectors import exchange
from runs.exchange.services.reading import IMPORTED
from runs.execution.reporter import ArtifactData
from runs.export_reader import FORMAT_VERSION
from runs.models import (
    Annotation,
    Campaign,
    Cell,
    CellSummary,
    Change,
    Command,
    Configuration,
    ConfigurationRevision,
    Environment,
    HardwareProfile,
    Measurement,
    Metric,
    Project,
    Revision,
    Run,
    RunEvent,
    Scenario,
    Series,
    Server,
    SettingsSnapshot,
    SSHKey,
    Topology,
    TopologyNode,
)
from runs.models.runs import Artifact
from runs.queue.services import artifacts, attempts
from runs.seals.selectors import export_fields as exports
from runs.seals.selectors.seals import canonical
from runs.servers.services import servers
from runs.shared.errors import Refused, ServiceError
from tests import factories
from tests.each import check_each

pytestmark = pytest.mark.django_db

WHEN = datetime(2026, 1, 31, 2, tzinfo=UTC)

# What an export has of each model; what it leaves out is a matter of the instance.
CONTENTS = {
    Scenario: (exports.SCENARIO, {"runnable"}),
    Metric: (exports.METRIC, {"project"}),
    HardwareProfile: (exports.HARDWARE, {"created_at", "name_ja", "memory_printed"}),
    Environment: (exports.ENVIRONMENT, {"created_at"}),
    SettingsSnapshot: (exports.SETTINGS, {"created_at"}),
    Configuration: (
        exports.CONFIGURATION,
        {"project", "created_by", "created_at", "name_ja"},
    ),
    ConfigurationRevision: (
        exports.CONFIGURATION_REVISION,
        {"configuration", "created_by"},
    ),
    Topology: (exports.TOPOLOGY, {"created_at", "name_ja"}),
    Revision: (exports.REVISION, {"project"}),
    Campaign: (
        (*exports.CAMPAIGN, *exports.LINKS["campaign"]),
        {
            "project",
            "created_by",
            "paused_at",
            "cancelled_at",
            "waits_for_quiet",
            "missing_told_at",
            "missing_mailed_at",
            "uploaded_as",
            "mailing_since",
            "is_public",
            "remeasures",
            "leaves_out_doubtful",
        },
    ),
    Cell: (
        (*exports.CELL, *exports.LINKS["cell"]),
        {"campaign", "installation", "workload", "workload_version", "commit_at"},
    ),
    Run: (
        (*exports.RUN, *exports.LINKS["run"]),
        {
            "campaign",
            "cell",
            "cluster",
            "cancel_requested_at",
            "imported",
            "certificate",
            "again_of",
            "led_by",
            # Copies of the cell, which triggers keep.
            "cell_version",
            "cell_major",
            "is_public",
            "private_project",
        },
    ),
    Measurement: ((*exports.MEASUREMENT, *exports.LINKS["measurement"]), {"run"}),
    Series: (exports.SERIES, {"run"}),
    Artifact: (exports.ARTIFACT, {"run"}),
    RunEvent: (exports.EVENT, {"run"}),
    Command: (exports.COMMAND, {"run", "host"}),
    Annotation: (exports.ANNOTATION, {"campaign", "cell", "author"}),
    Change: (
        (*exports.CHANGE, *exports.LINKS["change"]),
        {
            # The campaign is a copy of the cell's, which a trigger keeps.
            "campaign",
            "cell",
            "run",
            "decided_by",
            "mailed_at",
            "mailing_since",
            "is_public",
            "private_project",
            # Where a step lies is judged again by the rules of who imports it.
            "earliest",
            "latest",
            "facts",
            "rules",
            "settled_at",
            "reason",
        },
    ),
}


@pytest.mark.parametrize("model", CONTENTS)
def test_every_field_is_exported_or_left_out_on_purpose(model):
    exported, left_out = CONTENTS[model]
    fields = {field.name for field in model._meta.concrete_fields} - {"id"}

    assert fields == set(exported) | left_out


def test_a_field_that_came_later_says_what_its_absence_means():
    """Files of this form are read for good: what is new in FIELDS goes into LATER as well."""
    first = {
        kind: sorted(names - export_reader.LATER.get(kind, {}).keys())
        for kind, names in (
            (kind, set(names)) for kind, names in export_reader.FIELDS.items()
        )
    }
    digest = hashlib.sha256(json.dumps(first, sort_keys=True).encode()).hexdigest()

    assert digest.startswith("6711910ec514565f"), first


@pytest.fixture(scope="module")
def files_of_the_project(stored_throughout, tmp_path_factory):
    """The folder of the files of a project with something of everything, which is stored once."""
    folder = tmp_path_factory.mktemp("files")
    with override_settings(ARTIFACTS_DIR=folder):
        stored_throughout(_project)
    return folder


@pytest.fixture
def project(files_of_the_project, settings, own_artifacts):
    shutil.copytree(files_of_the_project, settings.ARTIFACTS_DIR)
    return Project.objects.get(slug="lab")


def _project():
    made = projects.create(slug="lab", name="研究室", is_public=False)
    server = factories.server("db1", versions=["16.14", "18.4"])
    configuration = factories.configuration("tuned--lab", settings={"work_mem": "64MB"})
    revision = ConfigurationRevision.objects.create(
        configuration=configuration,
        number=1,
        settings={"work_mem": "64MB"},
        content_hash="tuned",
    )
    campaign = factories.campaign(
        "sixteen-against-eighteen--lab",
        project=made,
        on=server,
        title_ja="16と18",
        topology=servers.single_topology(server=server),
        configuration=configuration,
        configuration_revision=revision,
        expected_every=timedelta(days=1),
    )
    factories.finish_all(campaign, gain={"18.4": 1.1})
    for run in campaign.runs.order_by("pk")[:3]:
        factories.story(run)
        factories.artifact(
            run=run, data=ArtifactData("stdout", b"tps = 1\n" * run.repeat)
        )
        run.plan = {
            "host": "192.0.2.1",
            "username": "postgres",
            "port": 22,
            "bindir": "/b",
        }
        run.hardware, run.environment = factories.hardware(), factories.environment()
        run.labels = {"by": "nightly"}
        run.save()
    _uploaded(made)
    _varied(made, revision)
    factories.campaign("of-others")


def _varied(project, first):
    """A campaign of two configurations that repeats a published one."""
    factors = {"version": ["16.14"], "configuration": ["tuned--lab", "plain--lab"]}
    made = factories.campaign(
        "two-configurations--lab",
        factors=factors,
        project=project,
        reproduces="wg1-2013-2-2",
    )
    plain = ConfigurationRevision.objects.create(
        configuration=factories.configuration("plain--lab"),
        number=1,
        content_hash="plain",
    )
    for ordinal, revision in enumerate((first, plain), start=1):
        made.configurations.create(
            configuration=revision.configuration, revision=revision, ordinal=ordinal
        )
    factories.finish_all(made)


def _uploaded(project):
    made = factories.campaign(
        "nightly--lab", factors={"version": []}, project=project, origin="uploaded"
    )
    for number in range(3):
        sha = f"abcdef{number}"
        revision = Revision.objects.create(
            project=project,
            sha=sha,
            committed_at=WHEN + timedelta(days=number),
            parents=["0" * 7],
        )
        cell = factories.cell(
            made, {"clients": 8}, repeats=0, revision=revision, series_key="8"
        )
        Cell.objects.filter(pk=cell.pk).update(key=f"8@{sha}")
        factories.finish(factories.run(cell, external_id=sha), tps=1000.0 / 3 + number)
    failed = factories.run(
        cell, repeat=2, state="failed", code="partial", message="aborted"
    )
    Measurement.objects.create(run=failed, metric=factories.metric(), value=3.0)
    Annotation.objects.create(campaign=made, kind="conclusion", text="No change.")
    Annotation.objects.create(campaign=made, cell=cell, text="Here the disk was full.")
    Change.objects.create(
        cell=cell,
        run=cell.runs.get(repeat=1),
        metric=factories.metric(),
        kind="step",
        ratio=0.9,
        before=10,
        after=9,
        p_value=0.1,
    )
    made.state = Campaign.State.FINISHED
    made.save()


def exported(project):
    return b"".join(services.lines(project))


def alike(content):
    """The rows of an export, but for what an import says of where they came from."""
    told = {"imported": None, "shared": None, "instance": None}
    found = [json.loads(line) for line in content.splitlines()]
    for row in found:
        row.update({name: value for name, value in told.items() if name in row})
        row.update({"origin": "executed"} if row.get("origin") == "imported" else {})
    return found


def rows(content, kind):
    found = (json.loads(line) for line in content.splitlines())
    return [row for row in found if row["type"] == kind]


def changed(content, kind, **fields):
    """The export with other fields in the first line of a kind."""
    lines, is_done = [], False
    for line in content.splitlines():
        row = json.loads(line)
        if row["type"] == kind and not is_done:
            row, is_done = row | fields, True
        lines.append(canonical(row).encode() + b"\n")
    assert is_done
    return lines


@pytest.fixture
def empty(settings, tmp_path):
    """Make the database and the folder of the files as empty as on the first day."""

    def emptied():
        for model in (
            Campaign,
            Revision,
            Project,
            TopologyNode,
            Topology,
            Server,
            SSHKey,
            Configuration,
            SettingsSnapshot,
            HardwareProfile,
            Environment,
            Metric,
            Scenario,
        ):
            model.objects.all().delete()
        settings.ARTIFACTS_DIR = tmp_path / "elsewhere"

    return emptied


def test_what_is_exported_and_imported_is_exported_alike(project, empty):
    summaries = _summaries(project)
    content = exported(project)
    empty()

    done = services.load(lines=io.BytesIO(content))

    made = Project.objects.get(slug="lab")
    assert alike(exported(made)) == alike(content)
    assert (done.campaigns, done.runs, done.there) == (3, 28, 0)
    assert (made.name, made.is_public) == ("研究室", False)
    assert _summaries(made) == pytest.approx(summaries)
    kept = Artifact.objects.order_by("pk")[1]
    assert artifacts.open_artifact(kept).read() == b"tps = 1\n" * kept.run.repeat


def _summaries(project):
    found = CellSummary.objects.filter(cell__campaign__project=project)
    names = ("n", "median", "minimum", "maximum", "mean", "log_mean")
    order = ("cell__key", "metric__name")
    return [
        value for row in found.order_by(*order).values_list(*names) for value in row
    ]


def test_an_import_that_is_repeated_adds_nothing(project, empty):
    content = exported(project)
    empty()
    services.load(lines=io.BytesIO(content))

    again = services.load(lines=io.BytesIO(content))

    assert (again.campaigns, again.runs, again.there) == (0, 0, 28)
    assert alike(exported(Project.objects.get(slug="lab"))) == alike(content)


def test_an_import_where_it_came_from_adds_nothing(project):
    content = exported(project)

    services.load(lines=io.BytesIO(content))

    assert alike(exported(project)) == alike(content)
    assert Annotation.objects.count() == 2


def test_runs_that_are_missing_are_added_and_summarised(project):
    content = exported(project)
    gone = Run.objects.get(external_id="abcdef1")
    cell = gone.cell
    gone.delete()
    CellSummary.objects.filter(cell=cell).delete()

    done = services.load(lines=io.BytesIO(content))

    assert (done.runs, done.there) == (1, 27)
    assert CellSummary.objects.get(cell=cell).n == 1
    assert alike(exported(project)) == alike(content)


def test_cells_that_are_added_to_a_campaign_bring_their_levels(project):
    content = exported(project)
    cell = Run.objects.get(external_id="abcdef1").cell
    name, level = next(iter(cell.levels.items()))
    campaign = cell.campaign
    Campaign.objects.filter(pk=campaign.pk).update(factors={name: []})
    same = campaign.cells.filter(levels__contains={name: level})
    Run.objects.filter(cell__in=same).delete()
    same.delete()

    services.load(lines=io.BytesIO(content))

    campaign.refresh_from_db()
    assert level in campaign.factors[name]


def test_another_run_in_the_same_place_is_refused(project):
    content = exported(project)
    Run.objects.filter(external_id="abcdef1").update(started_at=WHEN)

    with pytest.raises(Refused) as refused:
        services.load(lines=io.BytesIO(content))

    assert refused.value.faults[0].code == "run_differs"


def test_no_address_user_or_key_of_a_server_is_in_an_export(project):
    text = exported(project).decode()

    assert "db1" in text
    for secret in ("192.0.2.1", "/srv/benchlab", "ssh-ed25519", '"username"'):
        assert secret not in text


def test_runs_that_have_not_ended_stay_where_they_are(project):
    factories.campaign("underway", project=project)

    content = exported(project)

    (row,) = [row for row in rows(content, "campaign") if row["slug"] == "underway"]
    assert row["state"] == "incomplete"
    assert len(rows(content, "run")) == 28


def test_the_default_project_has_what_belongs_to_nobody_but_no_publication(project):
    factories.campaign("printed", origin="published")

    slugs = {row["slug"] for row in rows(exported(projects.default()), "campaign")}

    assert slugs == {"of-others"}


def test_results_may_become_another_projects(project, empty):
    content = exported(project)
    empty()

    services.load(lines=io.BytesIO(content), into=projects.default())

    assert set(Campaign.objects.values_list("project__slug", flat=True)) == {"default"}
    assert not Project.objects.filter(slug="lab").exists()


# What is wrong with an export, and the code that says so.
WRONG = (
    (lambda content: [], "broken_off"),
    (lambda content: [b"tps = 7\n"], "not_json"),
    (lambda content: [b"[]\n"], "kind_unknown"),
    (lambda content: content.splitlines()[1:], "not_an_export"),
    (lambda content: content.splitlines()[:-1], "broken_off"),
    (
        lambda content: content.splitlines()[:3] + content.splitlines()[4:],
        "not_described",
    ),
    (lambda content: [*content.splitlines(), b"{}"], "after_the_end"),
    (
        lambda content: changed(content, "benchlab-export", version=99),
        "version_unknown",
    ),
    (lambda content: changed(content, "run", surprise=1), "fields_differ"),
    (lambda content: changed(content, "run", state="queued"), "invalid_choice"),
    (lambda content: changed(content, "run", hardware="?"), "not_described"),
    (lambda content: changed(content, "run", repeat="first"), "invalid"),
    (lambda content: changed(content, "run", started_at="yesterday"), "not_a_time"),
    (lambda content: changed(content, "campaign", scenario="?"), "not_described"),
    (
        lambda content: changed(content, "campaign", origin="published"),
        "invalid_choice",
    ),
    (lambda content: changed(content, "file", gzip="AAAA"), "content_differs"),
    (lambda content: changed(content, "file", sha256="0" * 64), "content_differs"),
    (lambda content: changed(content, "file", last=False), "broken_off"),
)


def test_a_file_that_is_wrong_is_refused_and_nothing_stored(project, empty, settings):
    content = exported(project)
    empty()

    def check(sample):
        broken, code = sample
        with pytest.raises(Refused) as refused:
            services.load(lines=broken(content))
        assert refused.value.faults[0].code == code
        for model in (Campaign, Run, Metric, Project, Revision):
            assert not model.objects.exists()
        assert not [
            path for path in settings.ARTIFACTS_DIR.rglob("*") if path.is_file()
        ]

    check_each(WRONG, check)


def test_a_metric_of_another_unit_is_refused(project):
    content = exported(project)
    Metric.objects.update(unit="transactions per fortnight")

    with pytest.raises(Refused) as refused:
        services.load(lines=io.BytesIO(content))

    assert (refused.value.kind, refused.value.faults[0].code) == (
        "contradicts",
        "differs",
    )


def test_a_campaign_of_another_project_is_not_taken(project):
    content = exported(project)
    Campaign.objects.filter(slug="nightly--lab").update(project=projects.default())

    with pytest.raises(Refused) as refused:
        services.load(lines=io.BytesIO(content))

    assert refused.value.faults[0].code == "campaign_taken"


def test_an_import_neither_meets_nor_shows_what_others_hide(project):
    content = exported(project)
    Topology.objects.update(slug=Concat(Value(IMPORTED), "slug"), name="Secret name")
    Configuration.objects.update(project=project)
    own = projects.create(slug="beta", is_public=False)

    for _time in range(2):
        services.load(lines=io.BytesIO(content), into=own)

    names = [
        slug.removesuffix("--lab")
        for slug in project.campaigns.values_list("slug", flat=True)
    ]
    assert set(own.campaigns.values_list("slug", "uploaded_as")) == {
        (f"{name}--beta", name) for name in names
    }
    assert set(own.configurations.values_list("slug", flat=True)) == {
        "plain--beta",
        "tuned--beta",
    }
    assert not own.campaigns.filter(topology__name="Secret name").exists()


def test_long_files_and_series_come_back(project, empty):
    run = project.campaigns.get(slug="nightly--lab").runs.first()
    content = bytes(number * 7919 % 251 for number in range(3_000_000))
    factories.artifact(run=run, data=ArtifactData("log", gzip.compress(content)))
    values = [number / 7 if number % 5 else None for number in range(172_800)]
    Series.objects.create(run=run, name="tps", interval=1, values=values)
    before = exported(project)
    empty()

    services.load(lines=io.BytesIO(before))

    assert alike(exported(Project.objects.get(slug="lab"))) == alike(before)


def _grow(project, number):
    campaign = project.campaigns.get(slug="nightly--lab")
    cell = campaign.cells.first()
    metric = factories.metric()
    runs = Run.objects.bulk_create(
        Run(
            campaign=campaign,
            cell=cell,
            repeat=100 + each,
            position=0,
            origin="uploaded",
            state="finished",
            message="x" * 500,
        )
        for each in range(number)
    )
    Measurement.objects.bulk_create(
        Measurement(run=run, metric=metric, value=1) for run in runs
    )


def test_the_memory_does_not_grow_with_the_project(project):
    def most():
        tracemalloc.start()
        for _line in services.lines(project):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    _grow(project, 200)
    few = most()
    campaign = project.campaigns.get(slug="nightly--lab")
    Run.objects.filter(campaign=campaign, repeat__gte=100).delete()
    _grow(project, 1600)

    assert most() < 1.5 * few


def test_an_export_takes_the_same_queries_whatever_its_size(
    project, django_assert_max_num_queries
):
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as few:
        exported(project)
    _grow(project, 300)
    with django_assert_max_num_queries(len(few)):
        exported(project)


def test_campaigns_that_are_read_together_keep_what_is_theirs(project, monkeypatch):
    server = Server.objects.first()
    for slug in ("z-4", "z-2", "z-3", "z-1"):
        made = factories.campaign(slug, project=project, repeats=2, on=server)
        for run in factories.finish_all(made).runs.all():
            factories.story(run)
        cell = made.cells.last()
        Annotation.objects.create(campaign=made, text=slug)
        Annotation.objects.create(campaign=made, cell=cell, text=f"A cell of {slug}")
    together = exported(project)
    monkeypatch.setattr(exchange, "TOGETHER", 1)
    apart = exported(project)

    assert together == apart
    for kind, model in (("cell", Cell), ("annotation", Annotation)):
        assert (
            len(rows(together, kind))
            == model.objects.filter(campaign__project=project).count()
        )
    ended = Run.objects.filter(campaign__project=project, state__in=Run.ENDED)
    assert len(rows(together, "run")) == ended.count()


def test_an_imported_run_that_failed_cannot_be_queued_again(project, empty):
    Run.objects.filter(plan__isnull=False).update(state="failed")
    content = exported(project)
    empty()
    services.load(lines=io.BytesIO(content))

    with pytest.raises(ServiceError, match="executed"):
        attempts.retry(run=Run.objects.filter(plan__isnull=False)[0])


# The commands


def test_the_commands_write_and_read_a_file(project, empty, tmp_path, capsysbinary):
    call_command("export_project", "lab")
    content = capsysbinary.readouterr().out
    path = tmp_path / "lab.ndjson.gz"
    path.write_bytes(gzip.compress(content))
    empty()

    call_command("import_project", str(path))

    assert b"3 campaigns and 28 runs are new" in capsysbinary.readouterr().out
    assert alike(exported(Project.objects.get(slug="lab"))) == alike(content)
    assert rows(content, "benchlab-export")[0]["version"] == FORMAT_VERSION


def test_the_commands_tell_what_is_wrong(project, tmp_path):
    with pytest.raises(CommandError, match="There is no project nowhere"):
        call_command("export_project", "nowhere")
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_project", "nowhere.ndjson")
    with pytest.raises(CommandError, match="There is no project nowhere"):
        call_command("import_project", "-", "--into", "nowhere")
    path = tmp_path / "broken"
    path.write_bytes(exported(project)[:-20])
    with pytest.raises(CommandError, match=r"line \d+: .*\nNothing was stored"):
        call_command("import_project", str(path))
