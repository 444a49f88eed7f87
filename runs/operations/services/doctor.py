"""Checks everything that BenchLab needs, and says what is wrong and what to do."""

import io
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from cryptography.x509 import load_pem_x509_certificate
from django.conf import settings
from django.core import checks as system_checks
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from benchlab import bucket
from runs.access.services import encryption
from runs.models import Artifact, Server
from runs.operations.selectors import health_checks, readiness
from runs.operations.selectors.health_checks import FAILED, OK, WARNING, Outcome
from runs.queue.services import artifacts, transitions
from runs.servers.services import preflight
from runs.shared import signs

# Above this, times from several machines cannot be put in one order.
MOST_SKEW_SECONDS = 5.0
ARTIFACTS_LOOKED_AT = 100
CERTIFICATE_SECONDS, CERTIFICATE_DAYS = 4, 14
PROBE = "benchlab-doctor"
NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
# Of runs on servers of this instance: those of imported runs have the times of another machine.
NEWEST_EVENT = """
SELECT extract(epoch FROM at)::float8 FROM runs_runevent
WHERE run_id IN (SELECT id FROM runs_run WHERE server_id IS NOT NULL) ORDER BY id DESC LIMIT 1"""


def examine(*, with_targets: bool = True) -> Iterator[Outcome]:
    """The results, one by one. Without a database, whatever needs it is skipped."""
    yield from _settings()
    outcomes = readiness.fresh().outcomes
    yield from outcomes
    is_there = {outcome.check: outcome.status != FAILED for outcome in outcomes}
    yield clock()
    if not settings.WORKER_HOST:
        yield _static_files()
    yield from _certificate()
    if is_there["database"]:
        if not settings.WORKER_HOST:
            yield _secrets()
        if bucket.is_set():
            yield files_in_bucket()
        yield _artifacts()
        yield _counts()
        if with_targets:
            yield from _targets()


def check_before_start() -> Iterator[Outcome]:
    """What can be checked while no service runs: without it none of them should start."""
    for check in (
        health_checks.database,
        health_checks.disk,
        health_checks.encryption_key,
        clock,
    ):
        yield check()


def _settings() -> Iterator[Outcome]:
    """Django's system checks and ours, and settings that must fit together."""
    messages = system_checks.run_checks()
    if not messages:
        yield Outcome("settings", OK, _("The settings fit together."))
    names = settings.SETTINGS_SET.items()
    kept_names, own_names = (
        ", ".join(name for name, in_file in names if in_file is is_kept)
        for is_kept in (False, True)
    )
    values = {
        "file": settings.VAR_DIR / "environment",
        "kept": kept_names or "-",
        "own": own_names or "-",
    }
    text = (
        _("%(file)s has %(kept)s; the environment of this process has %(own)s.")
        % values
    )
    yield Outcome("settings", OK, text)
    for message in messages:
        status = FAILED if message.level >= system_checks.ERROR else WARNING
        yield Outcome("settings", status, str(message.msg), str(message.hint or ""))
    if (
        not settings.DEBUG
        and not settings.TLS
        and settings.PUBLIC_URL.startswith("https:")
    ):
        remedy = _("Set BENCHLAB_TLS=1 where a proxy ends TLS.")
        text = _("BENCHLAB_URL begins with https, and BENCHLAB_TLS is not set.")
        yield Outcome("settings", WARNING, text, remedy)


def clock() -> Outcome:
    """This machine's clock compared with those of PostgreSQL and Redis, and what was stored."""
    remedy = _("Let all machines keep time by NTP (chrony, systemd-timesyncd).")
    answers, far = [], []
    for name, ask in (
        ("PostgreSQL", partial(_seconds, NOW)),
        ("Redis", _time_of_redis),
    ):
        try:
            skew = _skew(ask)
        except (psycopg.Error, RedisError, OSError):
            continue
        answers.append(name)
        if abs(skew) > MOST_SKEW_SECONDS:
            far.append(f"{name} {skew:+.0f} s")
    if far:
        text = _("The clocks differ from this one: %(what)s.") % {
            "what": ", ".join(far)
        }
        return Outcome("clock", FAILED, text, remedy)
    if (ahead := _newest_event() - time.time()) > MOST_SKEW_SECONDS:
        text = _(
            "The newest event of a run is %(seconds)d s in the future of this clock."
        )
        return Outcome("clock", FAILED, text % {"seconds": ahead}, remedy)
    if not answers:
        return Outcome("clock", WARNING, _("No time source could be reached."))
    agrees = _("It agrees with that of %(who)s.") % {"who": ", ".join(answers)}
    return Outcome("clock", OK, agrees)


def _skew(ask: Callable[[], float]) -> float:
    before = time.time()
    remote_time = ask()
    return remote_time - (before + time.time()) / 2


def _seconds(query: str) -> float:
    with health_checks.connected() as database:
        row = database.execute(query).fetchone()
    return float(row[0]) if row else 0.0


def _time_of_redis() -> float:
    return signs.redis_time(signs.redis_client())


def _newest_event() -> float:
    """When it was stored; 0 where there is none, or no table for it."""
    try:
        return _seconds(NEWEST_EVENT)
    except psycopg.Error:
        return 0.0


def _static_files() -> Outcome:
    if (Path(settings.STATIC_ROOT) / "staticfiles.json").exists():
        return Outcome("static files", OK, _("The static files are there."))
    remedy = _("Run manage.py collectstatic --noinput.")
    return Outcome(
        "static files", FAILED, _("They were not collected: no page works."), remedy
    )


def _certificate() -> Iterator[Outcome]:
    """How long that of BENCHLAB_URL is valid; nothing where the address is not https."""
    url = urlsplit(settings.PUBLIC_URL)
    if url.scheme != "https":
        return
    host_and_port = (url.hostname or "", url.port or 443)
    try:
        read = ssl.get_server_certificate(
            host_and_port, timeout=CERTIFICATE_SECONDS
        ).encode()
        days = (
            load_pem_x509_certificate(read).not_valid_after_utc - datetime.now(UTC)
        ).days
    except (OSError, ValueError) as error:
        remedy = _("Let this machine reach BENCHLAB_URL.")
        yield Outcome("certificate", WARNING, health_checks.one_line(error), remedy)
        return
    if days < 0:
        status = FAILED
    elif days < CERTIFICATE_DAYS:
        status = WARNING
    else:
        status = OK
    text = _("That of %(host)s is valid for %(days)d days.") % {
        "host": url.hostname,
        "days": days,
    }
    yield Outcome("certificate", status, text, _("Renew it, and restart the proxy."))


def _secrets() -> Outcome:
    unreadable = encryption.unreadable()
    if not unreadable:
        return Outcome("secrets", OK, _("All of them can be decrypted."))
    remedy = _(
        "Add the key they were encrypted under to BENCHLAB_ENCRYPTION_KEY, after a comma."
    )
    text = _("These cannot be decrypted: %(names)s.") % {
        "names": ", ".join(unreadable[:10])
    }
    return Outcome("secrets", FAILED, text, remedy)


def files_in_bucket() -> Outcome:
    """Whether the key may do in the bucket what BenchLab does there."""
    try:
        bucket.write(PROBE, io.BytesIO(b"probe"))
        with bucket.read(PROBE) as content:
            is_same = content.read() == b"probe"
        bucket.remove(PROBE)
    except OSError as error:
        remedy = _("Let the key read, write, delete and list below that address.")
        return Outcome(
            "files in the bucket", FAILED, health_checks.one_line(error), remedy
        )
    if not is_same:
        text = _("It returns something other than what was stored.")
        return Outcome("files in the bucket", FAILED, text)
    return Outcome(
        "files in the bucket", OK, _("They can be stored, read and removed.")
    )


def _artifacts() -> Outcome:
    """Whether the newest artifacts are where this process looks for them."""
    newest = Artifact.objects.order_by("-pk")[:ARTIFACTS_LOOKED_AT]
    digests = list(newest.values_list("sha256", flat=True))
    try:
        away = artifacts.missing(digests)
        missing = sum(digest in away for digest in digests)
    except OSError as error:
        return Outcome("artifacts", WARNING, health_checks.one_line(error))
    if missing:
        folder = bucket.described() if bucket.is_set() else settings.ARTIFACTS_DIR
        values = {"missing": missing, "number": len(digests), "folder": folder}
        text = _("%(missing)d of the newest %(number)d are not in %(folder)s.") % values
        remedy = _(
            "Let web and workers share BENCHLAB_VAR, or restore the files from a backup."
        )
        return Outcome("artifacts", WARNING, text, remedy)
    return Outcome(
        "artifacts",
        OK,
        _("The newest %(number)d are there.") % {"number": len(digests)},
    )


def _counts() -> Outcome:
    if not (wrong := transitions.drift_of_counts()):
        return Outcome(
            "counts", OK, _("The stored numbers of runs are those of the rows.")
        )
    text = _("%(number)d stored numbers of runs differ from the rows.") % {
        "number": wrong
    }
    return Outcome("counts", WARNING, text, _("Run manage.py recount_runs."))


def _targets() -> Iterator[Outcome]:
    """All servers with a confirmed host key, checked at the same time."""
    known_servers = (
        Server.objects.select_related("ssh_key").exclude(host_key="").order_by("name")
    )
    # A hop is checked on the way to the others.
    servers = list(known_servers.exclude(base_dir=""))
    for server in Server.objects.filter(host_key="").order_by("name"):
        remedy = _("Compare its fingerprint, and confirm it on its page.")
        text = _("Its host key is not confirmed.")
        yield Outcome(f"server {server.name}", WARNING, text, remedy)
    if not servers:
        return
    findings = preflight.check_servers(servers).findings
    for server in servers:
        mine = [finding for finding in findings if finding.server == server.name]
        for finding in mine:
            status = FAILED if finding.level == "error" else WARNING
            yield Outcome(
                f"server {server.name}", status, finding.message, finding.remedy
            )
        if not mine:
            yield Outcome(f"server {server.name}", OK, _("It can take runs."))
