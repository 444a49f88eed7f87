"""What BenchLab needs to serve and to measure: each check tests one thing and gives a reason."""

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.migrations.loader import MigrationLoader
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from benchlab import bucket
from benchlab.database.turns import turns
from benchlab.replica import ALIAS, IS_USABLE
from runs.execution.errors import WorkerFault
from runs.models import Campaign, Instance, Run, Server, ServerCheck
from runs.shared import signs, worker_health

# Unknown: it could not be asked, and says nothing of what it is about.
OK = "ok"
WARNING = "warning"
FAILED = "failed"
UNKNOWN = "unknown"
# A sign of life comes every five seconds; the supervisor's interval is a setting.
SILENT_SECONDS = 20.0
LEAST_FREE_BYTES = 256 * 2**20
LOW_FREE_SHARE = 0.05
MOST_COUNTED = 10_000
CONNECT_SECONDS = 2
# So long pages may be 503, as on a busy machine, before `/readyz` says so.
MOST_REFUSED_SECONDS = 30.0
SECONDS_AN_HOUR = 3600


@dataclass(frozen=True)
class Outcome:
    """The result of a check: `ok`, `warning`, `failed` or `unknown`, why, and what to do."""

    check: str
    status: str
    reason: str
    remedy: str = ""


def database() -> Outcome:
    """Whether the results database answers, and has the tables of this version."""
    try:
        with connected() as database:
            rows = database.execute(
                "SELECT name FROM django_migrations WHERE app = 'runs'"
            )
            applied = {str(row[0]) for row in rows}
    except psycopg.errors.UndefinedTable:
        applied = set()
    except psycopg.Error as error:
        remedy = _("Start PostgreSQL, or correct DATABASE_URL.")
        return Outcome("database", FAILED, one_line(error), remedy)
    needed, replaced = _migrations()
    if missing := sorted(needed - applied):
        reason = _("%(number)d migrations are missing, the first is %(name)s.")
        text = reason % {"number": len(missing), "name": missing[0]}
        return Outcome("database", FAILED, text, _("Run manage.py migrate."))
    if unknown := applied - needed - replaced:
        reason = _("It was migrated by a newer version: %(name)s is not known here.")
        text = reason % {"name": max(unknown)}
        remedy = _("Start that version, or restore the backup that was made before it.")
        return Outcome("database", FAILED, text, remedy)
    return Outcome(
        "database", OK, _("It answers, and its tables are those of this version.")
    )


@cache
def _migrations() -> tuple[frozenset[str], frozenset[str]]:
    """The names of those that are here, and of those that they stand for."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    own_migrations = {
        name: migration
        for (app, name), migration in loader.disk_migrations.items()
        if app == "runs"
    }
    replaced = {
        name
        for migration in own_migrations.values()
        for _app, name in migration.replaces
    }
    return frozenset(own_migrations), frozenset(replaced)


def pages() -> Outcome:
    """Whether requests of this process still get a connection: pages are 503 where none does.

    Asks for one itself where the last request got none, since nobody may ask after it.
    """
    if turns.refused_seconds():
        with suppress(OperationalError):
            connections[DEFAULT_DB_ALIAS].ensure_connection()
            connections[DEFAULT_DB_ALIAS].close()
    seconds = turns.refused_seconds()
    if seconds > MOST_REFUSED_SECONDS:
        text = _("No request has got a connection to the database for %(seconds)d s.")
        remedy = _("See the log of web for requests that do not end, and restart web.")
        return Outcome("pages", FAILED, text % {"seconds": seconds}, remedy)
    return Outcome("pages", OK, _("Requests get a connection to the database."))


def replica() -> Outcome:
    """Whether the standby that pages are read from follows its primary, where there is one."""
    remedy = _(
        "Start the standby, or correct DATABASE_REPLICA_URL. The primary answers meanwhile."
    )
    try:
        with connected(ALIAS) as database:
            row = database.execute(IS_USABLE, [None]).fetchone()
    except psycopg.Error as error:
        return Outcome("replica", WARNING, one_line(error), remedy)
    if row is None or not row[0]:
        text = _("It is no standby, or does not follow its primary.")
        return Outcome("replica", WARNING, text, remedy)
    return Outcome("replica", OK, _("It follows its primary."))


def not_asked(check: str) -> Outcome:
    """Of a check for which the database did not answer."""
    text = _("Not checked: the results database does not answer.")
    return Outcome(check, UNKNOWN, text, _("See the database."))


def encryption_key() -> Outcome:
    """Whether BENCHLAB_ENCRYPTION_KEY decrypts what is stored."""
    remedy = _(
        "Set the key that it was encrypted with, from your backup, after a comma as well."
    )
    try:
        keys = MultiFernet(
            [Fernet(key.strip()) for key in settings.ENCRYPTION_KEY.split(",")]
        )
    except ValueError:
        text = _("BENCHLAB_ENCRYPTION_KEY is missing or is not a Fernet key.")
        return Outcome("encryption key", FAILED, text, remedy)
    try:
        with connected() as database:
            query, values = _secret_to_open()
            row = database.execute(query, values).fetchone()
    except psycopg.Error:
        return not_asked("encryption key")
    if row is None:
        return Outcome("encryption key", OK, _("Nothing is encrypted yet."))
    try:
        keys.decrypt(bytes(row[1]))
    except InvalidToken:
        text = _("BENCHLAB_ENCRYPTION_KEY does not open the SSH key “%(name)s”.")
        return Outcome("encryption key", FAILED, text % {"name": row[0]}, remedy)
    return Outcome("encryption key", OK, _("The key opens what is stored."))


def _secret_to_open() -> tuple[LiteralString, list[int]]:
    """The query for one secret with its name; on a joined host for one of its copies."""
    if settings.WORKER_HOST:
        return _COPY, [settings.WORKER_HOST]
    return _FIRST_KEY, []


_FIRST_KEY: LiteralString = """
SELECT name, private_key_encrypted FROM runs_sshkey ORDER BY id LIMIT 1"""
_COPY: LiteralString = """
SELECT name, secret_encrypted FROM runs_hostsecret secret
JOIN runs_sshkey ON runs_sshkey.id = secret.ssh_key_id
WHERE host_id = %s ORDER BY secret.id LIMIT 1"""


def redis() -> Outcome:
    """Whether Redis answers, and asks for a password."""
    try:
        signs.redis_client().ping()
    except (RedisError, OSError, ValueError) as error:
        remedy = _("Start Redis, or correct REDIS_URL. Results are stored without it.")
        return Outcome("redis", FAILED, one_line(error), remedy)
    if not urlsplit(settings.REDIS_URL).password and not settings.REDIS_URL.startswith(
        "unix:"
    ):
        text = _(
            "It answers without a password: whoever reaches it can change its messages."
        )
        remedy = _(
            "Set requirepass in its configuration, and the password in REDIS_URL."
        )
        return Outcome("redis", WARNING, text, remedy)
    return Outcome("redis", OK, _("It answers."))


def workers() -> Outcome:
    """Whether a worker is alive; one that stopped unexpectedly or is unfit is reported as well."""
    with suppress(RedisError, OSError, ValueError):
        if unfit := worker_health.reasons():
            text = _("A worker takes no runs for now: %(why)s")
            why = "; ".join(f"{host}: {reason}" for host, reason in unfit.items())
            return Outcome(
                "workers", WARNING, text % {"why": why}, _(WorkerFault.remedy)
            )
    return _living(
        "workers",
        "worker",
        SILENT_SECONDS,
        _("No worker shows a sign of life: nothing is measured."),
        _(
            "Start a worker, and look at the log of the one that stopped: journalctl -u "
            "benchlab-worker, docker compose logs worker, or logs/worker.log in BENCHLAB_VAR."
        ),
    )


def control() -> Outcome:
    """Whether a supervisor is alive, which looks for lost runs, schedules and waiting work."""
    return _living(
        "control",
        "control",
        max(SILENT_SECONDS, 2 * settings.SUPERVISE_SECONDS + 10),
        _("Supervision is not running: lost runs and schedules are not noticed."),
        _(
            "Start control, and look at its log: journalctl -u benchlab-control, docker compose "
            "logs control, or logs/control.log in BENCHLAB_VAR."
        ),
    )


def sites() -> Outcome:
    """Whether a live worker serves each site, and those that a live campaign needs together."""
    try:
        with connected() as database:
            cursor = database.execute(
                _SITES,
                {"live": [campaign_state.value for campaign_state in Campaign.LIVE]},
            )
            needed = sorted([str(site) for site in row[0]] for row in cursor)
    except psycopg.Error:
        return not_asked("sites")
    if not needed:
        return Outcome("sites", OK, _("No server names a site."))
    try:
        workers = sites_of_workers()
    except (RedisError, OSError, ValueError) as error:
        return Outcome("sites", FAILED, one_line(error), _("See Redis."))
    missing = [
        sites_of_campaign
        for sites_of_campaign in needed
        if not any(served.issuperset(sites_of_campaign) for served in workers)
    ]
    single_sites = [
        sites_of_campaign[0]
        for sites_of_campaign in needed
        if len(sites_of_campaign) == 1
    ]
    if alone := [
        sites_of_campaign[0]
        for sites_of_campaign in missing
        if len(sites_of_campaign) == 1
    ]:
        text = _(
            "No live worker serves these sites: %(sites)s. Runs on their servers wait."
        )
        return Outcome(
            "sites", WARNING, text % {"sites": ", ".join(alone)}, explain_serving(alone)
        )
    if missing:
        text = _(
            "No live worker serves %(sites)s together: runs on servers of all of them wait."
        )
        words = {"sites": ", ".join(missing[0])}
        return Outcome("sites", WARNING, text % words, explain_serving(missing[0]))
    return Outcome(
        "sites",
        OK,
        _("Live workers serve %(sites)s.") % {"sites": ", ".join(single_sites)},
    )


# Each site, and those that a campaign in progress needs together.
_SITES = """
SELECT DISTINCT ARRAY[site] FROM runs_server WHERE site <> ''
UNION
SELECT array_agg(DISTINCT site) FROM runs_campaign campaign
JOIN runs_topologynode node ON node.topology_id = campaign.topology_id
JOIN runs_server server ON server.id = node.server_id
WHERE campaign.state = ANY(%(live)s) AND site <> '' GROUP BY campaign.id
"""


def sites_of_workers() -> list[frozenset[str]]:
    """The sites of each live worker. Raises RedisError, OSError."""
    workers = [sign for sign in signs.signs() if sign.kind == "worker"]
    return [frozenset(sign.sites) for sign in workers if sign.age <= SILENT_SECONDS]


def explain_serving(site_names: Iterable[str]) -> str:
    """What an operator does where no live worker serves these sites."""
    text = _("Start a worker that reaches them, with %(setting)s in its environment.")
    return text % {"setting": f"BENCHLAB_SITES={','.join(site_names)}"}


def _living(
    check: str, kind: str, patience: float, nobody: str, remedy: str
) -> Outcome:
    try:
        signs_of_kind = [sign for sign in signs.signs() if sign.kind == kind]
    except (RedisError, OSError):
        return Outcome(
            check, UNKNOWN, _("Not checked: Redis does not answer."), _("See Redis.")
        )
    silent = [sign for sign in signs_of_kind if sign.age > patience]
    live = len(signs_of_kind) - len(silent)
    names = ", ".join(f"{sign.process} ({sign.age:.0f} s)" for sign in silent)
    if not live:
        last_text = _("Last seen: %(who)s.") % {"who": names} if names else ""
        return Outcome(check, FAILED, f"{nobody} {last_text}".strip(), remedy)
    if silent and kind == "worker":
        text = _("%(number)d live; silent: %(who)s.") % {"number": live, "who": names}
        return Outcome(check, WARNING, text, remedy)
    if replaced := signs.counted("restarts").get(kind, 0):
        text = _(
            "%(number)d live; %(replaced)d that crashed were replaced: see the log."
        )
        return Outcome(check, OK, text % {"number": live, "replaced": replaced})
    return Outcome(check, OK, _("%(number)d live.") % {"number": live})


# A machine answers a check within a minute, or it hangs.
ANSWER_SECONDS = 60


def targets() -> Outcome:
    """Whether the servers that runs wait for can be used, and answer what they are asked."""
    words = {
        "seconds": ANSWER_SECONDS,
        "away": [Server.State.UNREACHABLE.value, Server.State.REFUSED.value],
        "waiting": [Run.State.QUEUED.value, Run.State.LOST.value],
        "active": ServerCheck.State.ACTIVE.value,
    }
    try:
        with connected() as database:
            rows = [
                (str(name), str(why)) for name, why in database.execute(_TARGETS, words)
            ]
    except psycopg.Error:
        return not_asked("targets")
    if not rows:
        return Outcome("targets", OK, _("All servers that runs wait for can be used."))
    server_names = ", ".join(
        f"{name} ({why or _('does not answer')})" for name, why in rows
    )
    text = _("Runs or checks wait for these servers: %(servers)s.") % {
        "servers": server_names
    }
    return Outcome(
        "targets", WARNING, text, _("Their pages say what is wrong, and what to do.")
    )


# Those at fault, by their code; those that a worker has asked in vain, without one.
_TARGETS = """
SELECT name, problem_code FROM runs_server server
WHERE state = ANY(%(away)s) AND EXISTS (
    SELECT FROM runs_run run WHERE run.server_id = server.id AND run.state = ANY(%(waiting)s))
UNION
SELECT name, '' FROM runs_server server
JOIN runs_checkedserver checked ON checked.server_id = server.id
JOIN runs_servercheck open ON open.id = checked.server_check_id
WHERE open.state = %(active)s AND open.asked_at < now() - make_interval(secs => %(seconds)s)
ORDER BY name
"""


def disk() -> Outcome:
    """Whether the folder of artifacts is writable and has room."""
    folder = existing(Path(settings.ARTIFACTS_DIR))
    remedy = _(
        "Free space there, for example with manage.py retain --remove, or enlarge the volume."
    )
    try:
        usage = shutil.disk_usage(folder)
        inodes = os.statvfs(folder)
    except OSError as error:
        return Outcome("disk", FAILED, one_line(error), remedy)
    if not os.access(folder, os.W_OK):
        text = _("%(folder)s cannot be written to.") % {"folder": folder}
        return Outcome(
            "disk", FAILED, text, _("Let BenchLab's account own that folder.")
        )
    free = {"folder": folder, "size": f"{usage.free / 2**20:.0f}"}
    text = _("%(size)s MB are free for %(folder)s.") % free
    if usage.free < LEAST_FREE_BYTES or (inodes.f_files and not inodes.f_favail):
        return Outcome("disk", FAILED, text, remedy)
    is_low = usage.free < LOW_FREE_SHARE * usage.total
    return Outcome("disk", WARNING if is_low else OK, text, remedy if is_low else "")


def files() -> Outcome:
    """Whether the bucket of files answers; without it files wait in the folder."""
    folder = Path(settings.ARTIFACTS_DIR)
    waiting = sum(1 for _path in islice(folder.glob("??/*.gz"), MOST_COUNTED))
    try:
        bucket.ask()
    except OSError as error:
        wait = _(
            "Nothing is lost: %(number)d files wait in %(folder)s until it answers."
        )
        remedy = wait % {"number": waiting, "folder": folder}
        return Outcome("files", WARNING, one_line(error), remedy)
    text = _("%(bucket)s answers; %(number)d files wait to be sent there.")
    values = {"bucket": bucket.described(), "number": waiting}
    return Outcome("files", OK, text % values)


def connected(alias: str = DEFAULT_DB_ALIAS) -> "psycopg.Connection[Any]":
    """A separate connection to the results database, which gives up after two seconds."""
    parameters: Mapping[str, Any] = connections[alias].get_connection_params()
    kept_parameters = {
        name: parameters[name] for name in parameters if name in _OF_LIBPQ
    }
    timeout = f"-c statement_timeout={CONNECT_SECONDS * 1000}"
    options = f"{kept_parameters.pop('options', '')} {timeout}".strip()
    return psycopg.connect(
        **{**kept_parameters, "options": options, "connect_timeout": CONNECT_SECONDS},
        autocommit=True,
    )


_OF_LIBPQ = frozenset(
    {
        "dbname",
        "user",
        "password",
        "host",
        "port",
        "options",
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "service",
        "passfile",
    }
)


# Seconds since the newest backup.
BACKUP_AGE = """
SELECT extract(epoch FROM now() - at)::float8 FROM runs_auditentry
WHERE action = 'backup_made' ORDER BY id DESC LIMIT 1"""
# And since the first thing that was done here.
_AGES = f"""
SELECT ({BACKUP_AGE}),
    (SELECT extract(epoch FROM now() - at)::float8 FROM runs_auditentry ORDER BY id LIMIT 1)
"""  # noqa: S608 - of constants


def copy() -> Outcome:
    """Whether this results database is held, as it may be a copy of one that is in use."""
    try:
        with connected() as database:
            row = database.execute(
                "SELECT held_by, held_at FROM runs_instance WHERE held_since IS NOT NULL"
            ).fetchone()
    except psycopg.Error:
        return not_asked("copy")
    if row is None:
        return Outcome(
            "copy", OK, _("Nothing says that another BenchLab uses its servers.")
        )
    held_by, server = (str(value) for value in row)
    why = str(Instance.Hold(held_by).label)
    if server:
        why = _("%(server)s was claimed by a copy of it.") % {"server": server}
    text = _(
        "This results database may be a copy: nothing runs, is sent or backed up. %(why)s"
    )
    remedy = _(
        "Say on the page /take-over/, or by manage.py take_over, who uses its servers."
    )
    return Outcome("copy", FAILED, text % {"why": why}, remedy)


def backup() -> Outcome:
    """Whether the newest backup is not older than BENCHLAB_BACKUP_HOURS."""
    try:
        with connected() as database:
            age, here = database.execute(_AGES).fetchone() or (None, None)
    except psycopg.Error:
        return not_asked("backup")
    most = settings.BACKUP_HOURS * SECONDS_AN_HOUR
    remedy = _(
        "Run manage.py backup each day; BENCHLAB_BACKUP_HOURS=0 if something else does it."
    )
    if age is None:
        if here is None or here <= most:
            return Outcome("backup", OK, _("Nothing had to be backed up yet."))
        return Outcome(
            "backup", WARNING, _("manage.py backup has made no backup yet."), remedy
        )
    text = _("The newest backup is %(hours).0f hours old.") % {
        "hours": age / SECONDS_AN_HOUR
    }
    is_old = age > most
    return Outcome("backup", WARNING if is_old else OK, text, remedy if is_old else "")


def existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def one_line(error: BaseException) -> str:
    """The text of an error in one line; those of drivers never contain passwords."""
    return " ".join(str(error).split())[:300] or type(error).__name__
