"""Loads: read what somebody brings, keep it encrypted, queue it on versions, and remove it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs.access.services import audit, encryption, host_secrets
from runs.campaigns.services import campaigns
from runs.campaigns.services.drafts import Draft
from runs.campaigns.services.titles import make_titles
from runs.configurations.services import configurations
from runs.loads.services import dumps, results
from runs.models import Campaign, Installation, Load, Project, Server
from runs.scenarios import statements
from runs.shared import reading, slugs
from runs.shared.errors import Fault, Refused, ServiceError
from runs.shared.reading import NotUnderstood
from runs.statements import content
from runs.statements.content import LoadData
from runs.statements.data_script import DataScript
from runs.statements.load import Load as ReadLoad

# Characters of statements, of which a million takes a second of CPU to read, and of SQL that makes
# data. What is larger is a dump on the server.
MOST_STATEMENTS = 6_000_000
MOST_SQL = 8_000_000
MOST_DAYS, USUAL_DAYS = 365, 90
# Of nothing else but its name follows that nobody can guess the address of another's load.
_NOT_SLUGS = ("new",)


@dataclass(frozen=True)
class Brought:
    """What somebody brings: a text of statements, perhaps counters of the same server, and data.

    `data_kind` is `pgbench` (with `scale`), `sql` (with `sql`), `dump` (which is uploaded next,
    `loads.services.dumps`) or `file` (with `path`, a dump on the server).
    """

    statements: str
    weights: str = ""
    prefix: str = ""
    masks: bool = False
    data_kind: content.DataKind = "pgbench"
    scale: int = 1
    sql: str = ""
    path: str = ""


@dataclass(frozen=True)
class Preview:
    """What was read of it; nothing is stored. `script` is None where the data are no SQL."""

    load: ReadLoad
    data: LoadData
    script: DataScript | None = None
    sql_left_out: tuple[str, ...] = field(default=())


def read(brought: Brought) -> Preview:
    """Read a load. Raises Refused with what is wrong, and ServiceError for what takes too long."""
    faults: list[Fault] = []
    read_load: ReadLoad | None = None
    script: DataScript | None = None
    _check_sizes(brought)
    try:
        with reading.reader() as reader:
            read_load = reader.load(
                brought.statements,
                prefix=brought.prefix,
                weights=brought.weights,
                masks=brought.masks,
            )
    except NotUnderstood as error:
        faults.append(
            Fault("/statements", error.refusal.code, reading.sentence(error.refusal))
        )
    if brought.data_kind == "sql":
        try:
            with reading.reader() as reader:
                script = reader.load_data(brought.sql)
        except NotUnderstood as error:
            faults.append(
                Fault("/sql", error.refusal.code, reading.sentence(error.refusal))
            )
    if brought.data_kind == "file" and not _is_path(brought.path):
        message = _(
            "Give the absolute path of a dump on the server, such as /srv/dumps/shop.dump."
        )
        faults.append(Fault("/path", "no_path", message))
    if read_load is not None and not read_load.units:
        message = _("None of its statements can be run; see what is left out, and why.")
        faults.append(Fault("/statements", "nothing_runs", message))
    if faults or read_load is None:
        raise Refused("invalid", faults)
    return Preview(read_load, _data(brought, script), script)


def _check_sizes(brought: Brought) -> None:
    limits = (
        ("statements", brought.statements, MOST_STATEMENTS),
        ("weights", brought.weights, MOST_STATEMENTS),
        ("sql", brought.sql, MOST_SQL),
    )
    for name, text, most in limits:
        if len(text) > most:
            message = _("It has more than %(most)d characters.") % {"most": most}
            raise Refused("invalid", [Fault(f"/{name}", "too_long", message)])


def _is_path(path: str) -> bool:
    parts = path.split("/")
    is_plain = "\0" not in path and "\n" not in path and len(path) <= 500
    return path.startswith("/") and ".." not in parts and is_plain


def _data(brought: Brought, script: DataScript | None) -> LoadData:
    if script is not None:
        return LoadData(
            "sql",
            script=script.script,
            extensions=script.extensions,
            tables=script.tables,
            objects=script.statements,
            left_out=script.left_out,
            roles=script.roles,
            needs=script.needs,
        )
    if brought.data_kind == "dump":
        return LoadData("dump")
    if brought.data_kind == "file":
        return LoadData("file", path=brought.path)
    return LoadData("pgbench", scale=brought.scale)


@transaction.atomic
def create(
    *,
    name: str,
    brought: Brought,
    project: Project,
    by: User | None,
    days: int = USUAL_DAYS,
) -> Load:
    """Keep a load for so many days. Raises as `read`."""
    preview = read(brought)
    key = content.new_key()
    stored = {
        "units": [asdict(unit) for unit in preview.load.units],
        "left_out": [asdict(row) for row in preview.load.left_out],
        "data": asdict(preview.data),
    }
    load = Load(
        project=project,
        name=name.strip(),
        key_encrypted=encryption.encrypt(key),
        content=content.sealed(key, stored),
        format=preview.load.format,
        data_kind=preview.data.kind,
        units=len(preview.load.units),
        left_out=len(preview.load.left_out),
        calls=preview.load.calls,
        masked=preview.load.masked,
        created_by=by,
        expires_at=timezone.now() + timedelta(days=min(max(days, 1), MOST_DAYS)),
    )
    # Never again the slug of one that was removed: clusters on servers are found by it.
    called = f"{name} {timezone.now():%Y%m%d%H%M%S}"
    slugs.store(
        load, called=called, otherwise="load", project=project, taken=_NOT_SLUGS
    )
    host_secrets.share_load(load, key)
    audit.record(
        "load_kept", f"load {load.slug}", project=project, after={"units": load.units}
    )
    return load


@transaction.atomic
def remove(*, load: Load) -> None:
    """Remove a load and its key: what its runs have kept of its statements is then unreadable."""
    audit.record("load_removed", f"load {load.slug}", project=load.project, before={})
    load.delete()


def remove_expired() -> int:
    """Remove the loads whose time is over."""
    loads = list(Load.objects.expired().select_related("project"))
    for load in loads:
        remove(load=load)
    return len(loads)


@dataclass(frozen=True)
class Asked:
    """On what a load is measured: installations of one server, how often, and for how long.

    `clients` are those of the load as a whole; with 0 it is not measured. If it `is_cold`, caches
    are emptied before each execution.
    """

    server: Server
    installations: Sequence[Installation]
    rounds: int
    seconds: int
    clients: int
    statement_timeout: int
    disk_mb: int
    is_cold: bool = False


# At least in a run. A cold execution takes a restart: further rounds say more than passes.
WARM_PASSES, COLD_PASSES = 3, 1
LEAST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS = 3, 6, 50


def queue(*, load: Load, asked: Asked, by: User | None) -> Campaign:
    """Queue a campaign of a load, in its project. Raises ServiceError.

    In each round every version has a run in a random order, each with a fresh copy of the data.
    """
    data = results.opened(load).data
    if data.is_missing:
        message = _("Its data are missing: upload the dump first.")
        raise ServiceError("dump_missing", message)
    if len({installation.version for installation in asked.installations}) < 2:
        message = _("Choose two versions or more.")
        raise ServiceError("one_version", message, field="installations")
    dumps.require_versions(
        data,
        {
            installation.version_num // 10_000: installation.version
            for installation in asked.installations
        },
    )
    titles = make_titles(
        gettext_noop("%(name)s, statement by statement"), name=load.name
    )
    draft = Draft(
        title=titles.english,
        title_ja=titles.japanese,
        scenario=statements.SCENARIO.slug,
        server=asked.server,
        installations=asked.installations,
        # What an upgrade changes are also the defaults.
        configuration=configurations.defaults(),
        levels={statements.FACTOR: [load.slug]},
        parameters={
            "duration": asked.seconds,
            "passes": COLD_PASSES if asked.is_cold else WARM_PASSES,
            statements.COLD: int(asked.is_cold),
            statements.CLIENTS: asked.clients,
            "statement_timeout": asked.statement_timeout,
            "disk_mb": asked.disk_mb,
        },
        repeats=asked.rounds,
        # A further round says more than a run that is measured again: both versions are in it.
        remeasures=0,
    )
    return campaigns.create(draft=draft, by=by, project=load.project)
