"""Campaigns, cells and runs of an import, in the order of the file."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import DataError, IntegrityError, transaction
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.cells.services import summaries
from runs.exchange.services import reading
from runs.exchange.services.files import Files
from runs.exchange.services.reading import refused
from runs.exchange.services.references import Known
from runs.export_reader import FILE
from runs.models import (
    Annotation,
    Campaign,
    CampaignConfiguration,
    Cell,
    Import,
    Project,
    Run,
)
from runs.models.campaigns import Origin
from runs.seals.selectors import export_fields
from runs.seals.selectors.export_fields import Row
from runs.seals.services import seals
from runs.shared import queries, slugs
from runs.shared import reading as foreign
from runs.shared.database import array, copy, perform
from runs.uploads.services import workload_levels
from runs.uploads.services.question import find_own_slugs

# The order in which rows may refer to one another.
TABLES = (
    "runs_cell",
    "runs_run",
    "runs_measurement",
    "runs_artifact",
    "runs_runevent",
    "runs_series",
    "runs_command",
    "runs_annotation",
    "runs_change",
)
MOST_ROWS = 5000
MOST_VALUES = 500_000  # of series
IDS = 1000  # fetched at a time


class Waiting:
    """Rows that are not stored yet, by table."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = defaultdict(list)
        self.size = 0

    def add(self, table: str, row: Row) -> None:
        """Keep a row for the next `store`."""
        self.rows[table].append(row)
        self.size += 1 + len(row.get("values") or ()) * MOST_ROWS // MOST_VALUES

    @property
    def is_much(self) -> bool:
        """Whether enough rows are waiting to be stored."""
        return self.size >= MOST_ROWS

    def store(self) -> None:
        """Write everything to the database. Raises DataError and IntegrityError."""
        for table in TABLES:
            if rows := self.rows.get(table):
                _copy(table, rows)
        self.rows.clear()
        self.size = 0


def new_ids(table: str) -> Iterator[int]:
    """Keys for new rows, without end."""
    query = (
        "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"
    )
    while True:
        yield from (key for (key,) in queries.rows(query, [table, IDS]))


def _copy(table: str, rows: list[Row]) -> None:
    names = list(rows[0])
    copy(table, names, ([_plain(name, row[name]) for name in names] for row in rows))


def _plain(name: str, value: Any) -> Any:
    if name == "values":  # the only array
        return array(value)
    return (
        json.dumps(value) if name in JSON or isinstance(value, dict | list) else value
    )


# JSON columns, where a null is a value too: those that are never null.
JSON = frozenset({"levels", "quality", "labels", "argv"})


class Provenance:
    """Where the runs of an import come from, and whether somebody sealed them as they are.

    Runs are never taken as executed here, whatever the file says.
    """

    def __init__(self, *, may_bring_executed: bool) -> None:
        self.may_bring_executed = may_bring_executed
        self.exported_from = ""
        self.stored = Import(by=audit.present().name[:200])

    def begin(self, instance: str, *, exported_from: str) -> None:
        """The file is from this project (its slug) of this instance, as it says itself.

        Slugs of a private project's campaigns end with the project's.
        """
        self.exported_from = exported_from
        self.stored.instance = instance
        self.stored.save()

    def origin(self, number: int, told: str) -> str:
        """The origin of what is stored. Raises Refused for what the importer has no right to."""
        if told == Origin.UPLOADED:
            return told
        if not self.may_bring_executed:
            message = _("Only who may bring in executed figures may import these runs.")
            raise refused(number, "executed_elsewhere", message)
        return Origin.IMPORTED.value

    def finish(self, proof: foreign.Proof) -> None:
        """After the last line: store what the file's chain proves."""
        faults = proof.faults
        if not faults and not proof.runs:
            faults = [_("No run of the file has a seal.")]
        elif not faults and len(proof.keys) > 1:
            faults = [_("Its chain is signed with several keys.")]
        self.stored.key = proof.keys[0] if len(proof.keys) == 1 else ""
        self.stored.fault = faults[0][:500] if faults else ""
        self.stored.is_verified = not faults
        self.stored.save()


class Results:
    """Stores lines of results; a line belongs to the last line of its parent kind before it.

    Existing campaigns, cells and runs are not written again. An existing run with a different time
    is a different run, so the file is refused.
    """

    def __init__(
        self,
        project: Project,
        known_references: Known,
        files: Files,
        provenance: Provenance,
    ) -> None:
        self.project = project
        self.provenance = provenance
        self.files = files
        self.known = known_references
        self.waiting = Waiting()
        self.cell_ids, self.run_ids = new_ids("runs_cell"), new_ids("runs_run")
        self.campaign: Campaign | None = None
        self.is_new = False
        self.cell: int | None = None
        self.run: int | None = None
        # When the runs of the present cell that are here already were started, by repeat.
        self.there: dict[int, datetime | None] = {}
        self.to_summarise: set[int] = set()
        self.to_seal: list[int] = []
        # Campaigns that were here before and got cells, whose levels are to be their factors'.
        self.to_note: set[int] = set()
        self.campaigns = self.runs = self.skipped = 0

    def add(self, number: int, kind: str, row: Row) -> None:
        """Store a line. Raises Refused, and the database's errors for values of a wrong type."""
        if kind == "campaign":
            self._campaign(number, row)
        elif self.campaign is None:
            raise refused(number, "out_of_order", _("A campaign must come first."))
        elif kind in {"series", "command"}:
            self._read_run(number, kind, row)
        else:
            takers = {
                "cell": self._cell,
                "run": self._run,
                "annotation": self._annotation,
            }
            takers[kind](self.campaign, number, row)
        if self.waiting.is_much:
            self.store()

    def store(self) -> None:
        """Store what waits, and update the summaries of cells that got runs."""
        self.waiting.store()
        summaries.refresh_all(cell_ids=sorted(self.to_summarise))
        perform([seals.requesting(runs=self.to_seal)] if self.to_seal else [])
        for campaign_id in sorted(self.to_note):
            workload_levels.note_levels(campaign_id=campaign_id)
        self.to_note.clear()
        self.to_summarise.clear()
        self.to_seal.clear()

    def _campaign(self, number: int, row: Row) -> None:
        self.store()
        fields: dict[str, Any] = {name: row[name] for name in export_fields.CAMPAIGN}
        fields |= self._linked(number, row)
        every = fields["expected_every"]
        fields["expected_every"] = None if every is None else timedelta(seconds=every)
        name = fields.pop("slug").removesuffix(
            f"{slugs.OF}{self.provenance.exported_from}"
        )
        slug = find_own_slugs({name}, self.project).get(name, name)
        fields |= {
            "project": self.project,
            "uploaded_as": name if slug != name else "",
            "origin": self.provenance.origin(number, row["origin"]),
        }
        self.campaign, self.is_new = Campaign.objects.get_or_create(
            slug=slug, defaults=fields
        )
        self.cell = self.run = None
        if self.is_new:
            Campaign.objects.filter(pk=self.campaign.pk).update(
                created_at=row["created_at"]
            )
            self._add_configurations(number, row)
            self.campaigns += 1
        else:
            self._refuse_another(self.campaign, number, row)

    def _add_configurations(self, number: int, row: Row) -> None:
        """Those that vary, the baseline first."""
        for ordinal, configuration_row in enumerate(row["configurations"], start=1):
            slug, revision = (
                configuration_row["configuration_slug"],
                configuration_row["revision_number"],
            )
            keys: dict[str, Any] = {
                "campaign": self.campaign,
                "configuration_id": self.known.key(number, "configuration", slug),
                "revision_id": self.known.key(
                    number, "configuration_revision", (slug, revision)
                ),
            }
            campaign_configuration = CampaignConfiguration(ordinal=ordinal, **keys)
            campaign_configuration.save(force_insert=True)

    def _linked(self, number: int, row: Row) -> Row:
        revision = row["configuration_revision"]
        name = None if revision is None else (row["configuration"], revision)
        return {
            "scenario_id": self.known.key(number, "scenario", row["scenario"]),
            "topology_id": self.known.key(number, "topology", row["topology"]),
            "configuration_id": self.known.key(
                number, "configuration", row["configuration"]
            ),
            "configuration_revision_id": self.known.key(
                number, "configuration_revision", name
            ),
        }

    def _refuse_another(self, campaign: Campaign, number: int, row: Row) -> None:
        owner = campaign.project_id or self.project.pk
        if owner != self.project.pk:
            message = _("The name %(slug)s is taken by a campaign of another project.")
            raise refused(
                number,
                "campaign_taken",
                message % {"slug": campaign.slug},
                "contradicts",
            )
        scenario = self.known.key(number, "scenario", row["scenario"])
        origins = {row["origin"], self.provenance.origin(number, row["origin"])}
        if campaign.origin not in origins or campaign.scenario_id != scenario:
            message = _(
                "There is another campaign %(slug)s: of another origin or scenario."
            )
            raise refused(
                number,
                "campaign_differs",
                message % {"slug": campaign.slug},
                "contradicts",
            )

    def _cell(self, campaign: Campaign, number: int, row: Row) -> None:
        self.run, self.there = None, {}
        if not self.is_new:
            stored_cell = Cell.objects.filter(campaign=campaign, key=row["key"]).first()
            if stored_cell is not None:
                self.cell = stored_cell.pk
                runs = Run.objects.filter(cell=stored_cell).values_list(
                    "repeat", "started_at"
                )
                self.there = dict(runs)
                return
            self.to_note.add(campaign.pk)
        self.cell = next(self.cell_ids)
        self.waiting.add(
            "runs_cell",
            {
                "id": self.cell,
                "campaign_id": campaign.pk,
                "revision_id": self.known.key(number, "revision", row["revision"]),
                **{name: row[name] for name in export_fields.CELL},
            },
        )

    def _run(self, campaign: Campaign, number: int, row: Row) -> None:
        if self.cell is None:
            raise refused(number, "out_of_order", _("A cell must come first."))
        if row["repeat"] in self.there:
            self._refuse_another_run(number, row)
            self.run = None
            self.skipped += 1
            return
        if campaign.origin == Origin.EXECUTED:
            message = _("%(slug)s was executed here: it takes no runs from elsewhere.")
            message %= {"slug": campaign.slug}
            raise refused(number, "campaign_executed", message, "contradicts")
        self.run = next(self.run_ids)
        self.runs += 1
        labels = dict(row["labels"])
        if row["server"] is not None:
            labels[export_fields.ELSEWHERE] = row["server"]
        self.waiting.add(
            "runs_run",
            {
                "id": self.run,
                "campaign_id": campaign.pk,
                "cell_id": self.cell,
                "hardware_id": self.known.key(number, "hardware", row["hardware"]),
                "environment_id": self.known.key(
                    number, "environment", row["environment"]
                ),
                "settings_id": self.known.key(number, "settings", row["settings"]),
                **{name: row[name] for name in export_fields.RUN},
                "labels": labels,
                "origin": self.provenance.origin(number, row["origin"]),
                "imported_id": self.provenance.stored.pk,
                # Certificates are of what was executed here.
                "validity": "",
            },
        )
        self._add_outputs(number, row)
        if row["state"] == Run.State.FINISHED:
            self.to_seal.append(self.run)
            if row["measurements"]:
                self.to_summarise.add(self.cell)

    def _refuse_another_run(self, number: int, row: Row) -> None:
        if self.there[row["repeat"]] != row["started_at"]:
            message = _(
                "Repeat %(repeat)d of this cell is here already, and is another run."
            )
            raise refused(
                number,
                "run_differs",
                message % {"repeat": row["repeat"]},
                "contradicts",
            )

    def _add_outputs(self, number: int, row: Row) -> None:
        for results in row["measurements"]:
            metric = self.known.key(number, "metric", results["metric"])
            fields = {name: results[name] for name in export_fields.MEASUREMENT}
            self.waiting.add(
                "runs_measurement", {"run_id": self.run, "metric_id": metric, **fields}
            )
        for results in row["artifacts"]:
            self.files.check(number, self.project, results)
            self.waiting.add("runs_artifact", {"run_id": self.run, **results})
        for results in row["events"]:
            self.waiting.add("runs_runevent", {"run_id": self.run, **results})
        for results in row["changes"]:
            self._add_change(number, results)

    def _add_change(self, number: int, row: Row) -> None:
        fields = {name: row[name] for name in export_fields.CHANGE}
        fields |= {
            "run_id": self.run,
            "cell_id": self.cell,
            "metric_id": self.known.key(number, "metric", row["metric"]),
            # Reported where it was found: nobody gets a mail for it here.
            "mailed_at": row["found_at"],
        }
        self.waiting.add("runs_change", fields)

    def _read_run(self, number: int, kind: str, row: Row) -> None:
        if self.run is not None:
            table = "runs_series" if kind == "series" else "runs_command"
            host = {"host": ""} if kind == "command" else {}
            self.waiting.add(table, {"run_id": self.run, **host, **row})
        elif not self.there:
            raise refused(number, "out_of_order", _("A run must come first."))

    def _annotation(self, campaign: Campaign, _number: int, row: Row) -> None:
        if not self.is_new:
            own_annotations = Annotation.objects.filter(campaign=campaign, **row)
            if own_annotations.filter(cell=self.cell).exists():
                return
        self.waiting.add(
            "runs_annotation", {"campaign_id": campaign.pk, "cell_id": self.cell, **row}
        )


RESULTS = frozenset({"campaign", "cell", "run", "series", "command", "annotation"})


@dataclass(frozen=True)
class Imported:
    """What an import has added; `there` are the runs that existed before."""

    project: str
    campaigns: int
    runs: int
    there: int


def load(
    *,
    lines: Iterable[bytes],
    into: Project | None = None,
    may_bring_executed: bool = True,
) -> Imported:
    """Store an export; existing rows stay, so a second import adds nothing.

    Runs that were executed elsewhere are stored as imported, if `may_bring_executed`.

    The target is the project of its first line, created if necessary, or another one.
    Raises Refused with the number of the line that is at fault. Takes minutes for a million runs.
    """
    files = Files()
    try:
        with foreign.reader() as reader, transaction.atomic():
            export = reading.ExportFile(lines, reader)
            return _load(export, into, files, may_bring_executed=may_bring_executed)
    finally:
        files.discard()


def _load(
    export: reading.ExportFile,
    into: Project | None,
    files: Files,
    *,
    may_bring_executed: bool,
) -> Imported:
    provenance = Provenance(may_bring_executed=may_bring_executed)
    rows = export.rows()
    first = reading.header(next(rows, None))
    number = 1
    try:
        project = into or _project(first["project"])
        provenance.begin(first["instance"], exported_from=first["project"]["slug"])
        known_references = Known(project, exported_from=provenance.exported_from)
        results = Results(project, known_references, files, provenance)
        for number, kind, row in rows:  # reported where it goes wrong
            _take(number, kind, row, known_references, files, results)
        files.finish(number)
        results.store()
        assert export.proof is not None  # noqa: S101  # its last line has been read
        provenance.finish(export.proof)
        details = {
            "campaigns": results.campaigns,
            "runs": results.runs,
            "there": results.skipped,
        }
        audit.record("imported", project, project=project, after=details)
        files.place()
        seals.seal_once_committed()
    except (DataError, IntegrityError, KeyError, TypeError, ValueError) as error:
        # Rows are stored many at a time: the fault is in this line or one shortly before it.
        message = _("In or before this line: %(error)s") % {"error": _short(error)}
        raise refused(number, "invalid", message) from error
    return Imported(project.slug, results.campaigns, results.runs, results.skipped)


def _project(described: Row) -> Project:
    project, _created = Project.objects.get_or_create(
        slug=described["slug"],
        defaults={"name": described["name"], "is_public": described["public"]},
    )
    return project


def _take(
    number: int,
    kind: str,
    row: Row,
    known_references: Known,
    files: Files,
    results: Results,
) -> None:
    if kind == FILE:
        files.add(number, row)
    elif kind in RESULTS:
        files.finish(number)
        results.add(number, kind, row)
    elif kind == "seal":
        # From the exporting BenchLab. This one seals the runs in a chain of its own.
        files.finish(number)
    else:
        known_references.add(number, kind, row)


def _short(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__} {text[0] if text else ''}".strip()
