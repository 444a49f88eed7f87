"""Exports that were changed without the key: the verifier names each, and so does the import."""

import copy
import inspect
import io
import json
from functools import partial

import pytest
from django.core.management import call_command

from runs import export_reader
from runs.access.services import projects
from runs.exchange import services
from runs.execution.reporter import ArtifactData
from runs.export_reader import FIELDS, INNER, NESTED, ExportReader, Unreadable
from runs.models import Import, Metric, Revision, Run
from runs.queue.services import withdrawals
from runs.seals.selectors import export_fields as exported
from runs.seals.selectors.sealed_content import contents_of
from runs.seals.selectors.seals import canonical
from runs.seals.services import seals
from runs.shared.errors import Refused
from tests import factories

pytestmark = pytest.mark.django_db

# What no seal is over (docs/seals.md). Whatever else the format gets is sealed, or listed here.
NOT_SEALED = {
    "benchlab-export": {"instance", "project"},
    "scenario": {"title", "description"},
    "metric": {"title_ja"},
    "hardware": {"slug", "name"},
    "environment": {"slug"},
    "configuration": set(FIELDS["configuration"]) - {"slug", "revisions"},
    "configuration_revision": set(FIELDS["configuration_revision"]),
    "campaign_configuration": set(FIELDS["campaign_configuration"]),
    "topology": set(FIELDS["topology"]),
    "revision": {"url", "parents", "subject", "author", "merge_base", "merge_base_at"},
    "campaign": set(FIELDS["campaign"]) - set(export_reader.CAMPAIGN),
    "annotation": set(FIELDS["annotation"]),
    "cell": {"ordinal"},
    "run": {
        "code",
        "message",
        "remedy",
        "wording",
        "speed",
        "events",
        "changes",
    },
    "artifact": {"created_at"},
    "event": set(FIELDS["event"]),
    "change": set(FIELDS["change"]),
}
# Names that lines refer to, of things of which nothing is sealed.
NOT_SEALED["scenario"] |= {"slug"}
NOT_SEALED["configuration"] |= {"slug", "revisions"}


@pytest.fixture
def key(settings, tmp_path):
    settings.SEAL_KEY = str(tmp_path / "seals" / "ed25519.pem")
    return tmp_path / "seals"


@pytest.fixture
def export(key):
    """The rows of an export with something of everything, of which one run is withdrawn."""
    project = projects.default()
    campaign = factories.campaign(
        "nightly", repeats=1, configuration=factories.configuration("tuned")
    )
    factories.finish_all(campaign)
    revision = Revision.objects.create(
        project=project, sha="a" * 40, ref="main", committed_at="2026-01-31T02:00:00Z"
    )
    campaign.cells.update(revision=revision)
    campaign.annotations.create(text="No change.")
    Metric.objects.update(project=project)
    for run in campaign.runs.order_by("pk"):
        factories.story(run)
        factories.artifact(run=run, data=ArtifactData("stdout", b"tps = %d\n" % run.pk))
        run.plan, run.validity = {"bindir": "/b"}, "valid"
        run.hardware, run.environment = factories.hardware(), factories.environment()
        run.save()
        seals.request(run=run.pk)
    withdrawals.withdraw(run=campaign.runs.latest("pk"), reason="the disk was failing")
    seals.seal()
    return [json.loads(line) for line in services.lines(project)]


@pytest.fixture
def verified(export, offline, key):
    """Verify a forged export with the key of the honest one: the exit status."""
    [public] = key.glob("*.pub")
    status, said = offline(export, "--key", str(public))
    assert status == 0, said
    return lambda rows: offline(rows, "--key", str(public))[0]


def mutated(value):
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value[:-1] + ("1" if value[-1:] != "1" else "2")
        case list():
            return value[:-1] if value else ["more"]
        case dict():
            return {**value, "more": 1}
        case _:
            return "something"


def fields_of(rows):
    """Each sealed field of each kind: the place of a line that has it, and the way to it."""
    for kind, names in FIELDS.items():
        if kind in INNER:
            continue
        sealed = sorted(set(names) - NOT_SEALED.get(kind, set()))
        for place in (place for place, row in enumerate(rows) if row["type"] == kind):
            for name in sealed:
                yield place, (name,)
            for name, inner in NESTED.get(kind, {}).items():
                for index in range(len(rows[place][name])):
                    for field in sorted(
                        set(FIELDS[inner]) - NOT_SEALED.get(inner, set())
                    ):
                        yield place, (name, index, field)
            break


def test_the_table_of_the_format_has_what_exports_and_imports_have():
    for kind, names in {
        "scenario": exported.SCENARIO,
        "hardware": exported.HARDWARE,
        "environment": exported.ENVIRONMENT,
        "settings": exported.SETTINGS,
        "configuration_revision": exported.CONFIGURATION_REVISION,
        "topology": exported.TOPOLOGY,
        "revision": exported.REVISION,
        "artifact": exported.ARTIFACT,
        "event": exported.EVENT,
        "series": exported.SERIES,
        "command": exported.COMMAND,
        "annotation": exported.ANNOTATION,
        "seal": exported.SEAL,
    }.items():
        assert set(names) == set(FIELDS[kind]), kind


def test_each_sealed_field_that_is_changed_is_named(export, verified):
    silent, looked_at = [], 0
    for place, way in fields_of(export):
        rows = copy.deepcopy(export)
        row = rows[place]
        *outer, name = way
        for step in outer:
            row = row[step]
        row[name] = mutated(row[name])
        looked_at += 1
        # The number of lines is counted again by anybody.
        if verified(rows) == 0 and rows[place]["type"] != "end":
            silent.append((rows[place]["type"], way))
    assert silent == []
    assert looked_at > 90


def moved(rows):
    """Every line doubled, moved to each other end, and removed."""
    for place in range(1, len(rows) - 1):
        without = [*rows[:place], *rows[place + 1 :]]
        yield "doubled", place, [*rows[:place], rows[place], *rows[place:]]
        yield "doubled at the end", place, [*rows[:-1], rows[place], rows[-1]]
        yield "removed", place, without
        yield "moved to the end", place, [*without[:-1], rows[place], without[-1]]
        yield "moved to the front", place, [without[0], rows[place], *without[1:]]


# Lines of which nothing is sealed may go, or stand elsewhere in their group.
LOOSE = {"scenario", "configuration", "topology", "annotation"}
# Nobody looks at the order of what all runs share, or of campaigns.
UNORDERED = {"metric", "hardware", "environment", "settings", "revision", "file"}


def test_each_line_that_is_doubled_moved_or_removed_is_named(export, verified):
    silent = []
    for act, place, rows in moved(export):
        kind = export[place]["type"]
        is_no_forgery = (
            (kind in LOOSE and act != "doubled")
            or (kind in UNORDERED and act == "moved to the front")
            or (kind == "annotation")
            # A file that is gone was pruned.
            or (kind == "file" and act == "removed")
            or (
                [row["type"] for row in rows] == [row["type"] for row in export]
                and sorted(map(canonical, rows)) == sorted(map(canonical, export))
                and act.startswith("moved")
                and kind in UNORDERED
            )
        )
        if not is_no_forgery and rows != export and verified(rows) == 0:
            silent.append((act, kind, place))
    assert silent == []


def test_no_name_of_the_program_is_a_kind_of_line(export, verified, program):
    seal = next(row for row in export if row["type"] == "seal")
    names = {
        *dir(program),
        *dir(program.Verification),
        *dir(program.ExportReader),
        *(name for name, _value in inspect.getmembers(program.Verification)),
    }
    kinds = (
        {name.strip("_") for name in names}
        | {name.replace("_", "-") for name in names}
        | names
    )
    silent = []
    for kind in sorted(kinds - (FIELDS.keys() - INNER) - {""}):
        forged = {**seal, "type": kind}
        if verified([*export[:-1], forged, export[-1]]) == 0:
            silent.append(kind)
    assert silent == []


def _run(rows):
    return next(row for row in rows if row["type"] == "run")


def _place(rows, kind):
    return next(place for place, row in enumerate(rows) if row["type"] == kind)


def _beside(rows, **fields):
    """A run that never was, next to the first one."""
    rows.insert(_place(rows, "run"), {**copy.deepcopy(_run(rows)), **fields})


def _twice(rows):
    figure = _run(rows)["measurements"][0]
    _run(rows)["measurements"].insert(0, {**figure, "value": figure["value"] * 1000})


def _told_again(rows, kind, **fields):
    rows.insert(-1, {**rows[_place(rows, kind)], **fields})


def _metric_twice(rows):
    place = _place(rows, "metric")
    rows.insert(place, {**rows[place], "unit": "a day", "direction": "lower"})


def _another_cell(rows):
    """A run goes to the cell after its own."""
    cells = [place for place, row in enumerate(rows) if row["type"] == "cell"]
    run = rows.pop(_place(rows, "run"))
    rows.insert(cells[1], run)


def _seals_exchanged(rows):
    one, two = [row for row in rows if row["type"] == "run"][:2]
    one["seal"], two["seal"] = two["seal"], one["seal"]


def _figures_exchanged(rows):
    one, two = [row for row in rows if row["type"] == "run"][:2]
    one["measurements"], two["measurements"] = two["measurements"], one["measurements"]


def _satisfied(rows):
    """The forgery of the third review: a line that names an inner step of the verifier."""
    run = _run(rows)
    seal = next(
        row for row in rows if row["type"] == "seal" and row["number"] == run["seal"]
    )
    run["measurements"][0]["value"] *= 1000
    run["seal"] = 99999
    told = {"type": "compare", "number": 99999, "run": seal["run"], "content": "{}"}
    rows.insert(-1, told)


def _all_withdrawn(rows):
    for row in rows:
        if row["type"] == "run":
            row["state"] = "withdrawn"


def _seal(rows, **fields):
    rows[_place(rows, "seal")].update(fields)


FORGERIES = {
    "a line that satisfies": _satisfied,
    "a run that never was": lambda rows: _beside(rows, repeat=77, seal=99998),
    "with the seal of another": lambda rows: _beside(rows, repeat=77),
    "without a seal": lambda rows: _beside(rows, repeat=78, seal=None),
    "withdrawn without a seal": lambda rows: _beside(
        rows, seal=None, state="withdrawn", repeat=9
    ),
    "a figure twice": _twice,
    "a metric twice": _metric_twice,
    "a metric at the end": lambda rows: _told_again(rows, "metric", unit="a day"),
    "a profile at the end": lambda rows: _told_again(rows, "hardware", cores=1),
    "a campaign again": lambda rows: _told_again(rows, "campaign", title="Other"),
    "a second export": lambda rows: _told_again(rows, "benchlab-export"),
    "in another cell": _another_cell,
    "seals exchanged": _seals_exchanged,
    "figures exchanged": _figures_exchanged,
    "all withdrawn": _all_withdrawn,
    "a metric more": lambda rows: _run(rows)["measurements"].append(
        {"metric": "tps", "statistic": "median", "value": 1.0, "n": 1}
    ),
    "no plan": lambda rows: _run(rows).update(plan=None),
    "no hardware": lambda rows: _run(rows).update(hardware=None),
    "no files": lambda rows: _run(rows).update(artifacts=[]),
    "said to be imported": lambda rows: _run(rows).update(
        imported={
            "instance": "x",
            "key": "",
            "is_verified": True,
            "at": "2026-01-31T02:00:00Z",
        }
    ),
    "form 1": lambda rows: rows[0].update(version=1) or _twice(rows),
    "form 99": lambda rows: rows[0].update(version=99),
    "form of another type": lambda rows: rows[0].update(version=True),
    "another project": lambda rows: rows[0]["project"].update(slug="other"),
    "no chain": lambda rows: [
        rows.remove(row) for row in rows[:] if row["type"] == "seal"
    ],
    "a seal without content": lambda rows: _seal(rows, content=""),
    "a seal of another run": lambda rows: _seal(rows, run=424242),
    "a seal of newer form": lambda rows: _seal(rows, content='{"form":99}'),
    "another branch": lambda rows: rows[_place(rows, "revision")].update(ref="other"),
    "another date": lambda rows: rows[_place(rows, "revision")].update(
        committed_at="2020-01-01T00:00:00+00:00"
    ),
}


def test_forgeries_of_all_kinds_are_named(export, verified):
    silent = []
    for name, forge in FORGERIES.items():
        rows = copy.deepcopy(export)
        forge(rows)
        assert rows != export
        if verified(rows) == 0:
            silent.append(name)
    assert silent == []


# Bytes that say the same to a lenient reader, or something else to another one.
BYTES = {
    "a name twice": lambda line: line.replace(b'{"', b'{"seal":null,"', 1),
    "spaces": lambda line: line.replace(b'":', b'": ', 1),
    "another number": lambda line: line.replace(b'"n":1', b'"n":1e0', 1),
    "escapes": lambda line: line.replace(b'"finished"', b'"\\u0066inished"', 1),
    "an end of Windows": lambda line: line.replace(b"\n", b"\r\n"),
    "an unknown name": lambda line: line.replace(
        b'"attempt":1', b'"attempt":1,"aztec":1', 1
    ),
    "no number": lambda line: line.replace(b'"n":1', b'"n":NaN', 1),
    "bytes that are no text": lambda line: line.replace(b"finished", b"f\xffnished", 1),
}


def test_bytes_that_an_export_does_not_write_are_refused(export):
    for name, change in BYTES.items():
        lines = [canonical(row).encode() + b"\n" for row in export]
        place = _place(export, "run")
        lines[place] = change(lines[place])
        assert lines[place] != canonical(export[place]).encode() + b"\n", name
        with pytest.raises(Unreadable):
            list(ExportReader().read(lines))
        with pytest.raises(Refused):
            services.load(lines=lines)


def test_unsealed_runs_are_accepted_aloud(export, offline):
    _beside(export, repeat=78, seal=None)
    assert offline(export)[0] == 1
    status, said = offline(export, "--allow-unsealed")
    assert status == 0
    assert "but for 1 runs that nothing proves" in said


def test_files_and_seals_of_form_1_are_verified(key, offline, monkeypatch):
    """As a release before wrote them: what came later is not there."""
    monkeypatch.setattr(seals, "contents_of", partial(contents_of, form=1))
    campaign = factories.finish_all(factories.campaign("nightly", repeats=1))
    for run in campaign.runs.all():
        factories.story(run)
        seals.request(run=run.pk)
    assert seals.seal() == 6
    rows = [json.loads(line) for line in services.lines(projects.default())]
    call_command("verify", stdout=io.StringIO())
    assert offline(rows)[0] == 0

    for row in rows:
        for name in set(export_reader.LATER.get(row["type"], {})) - {"seal"}:
            row.pop(name)
    rows[0]["version"] = 1
    assert offline(rows)[0] == 0
    _run(rows)["measurements"][0]["value"] += 1
    assert offline(rows)[0] == 1


def test_an_import_says_what_the_chain_of_the_file_proves(export, key):
    signer = next(row for row in export if row["type"] == "seal")["key"]
    lines = [canonical(row).encode() + b"\n" for row in export]
    forged = copy.deepcopy(export)
    _run(forged)["measurements"][0]["value"] *= 1000
    changed = [canonical(row).encode() for row in forged]
    for rows, is_verified in ((lines, True), (changed, False)):
        project = projects.create(slug=f"lab-{is_verified}".lower(), is_public=True)
        Run.objects.all().delete()
        factories.Campaign.objects.all().delete()
        services.load(lines=rows, into=project)
        [told] = Import.objects.order_by("-pk")[:1]
        assert (told.is_verified, told.key) == (is_verified, signer)
        assert bool(told.fault) is not is_verified
        assert set(Run.objects.values_list("origin", "imported")) == {
            ("imported", told.pk)
        }


def test_executed_figures_need_a_right_of_their_own(export):
    factories.Campaign.objects.all().delete()
    lines = [canonical(row).encode() + b"\n" for row in export]
    with pytest.raises(Refused) as refused:
        services.load(lines=lines, may_bring_executed=False)
    assert refused.value.faults[0].code == "executed_elsewhere"
