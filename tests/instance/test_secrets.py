"""Secrets of an instance, and ones planted in it, are found nowhere where they should not be."""

import gzip
import json
import os
import subprocess
import sys
import urllib.request
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from runs.execution.ssh.ssh import generate_private_key
from tests.instance.conftest import REPOSITORY, Instance

FIRST_RUN_SECONDS = 1
pytestmark = [pytest.mark.instance, pytest.mark.slow, pytest.mark.timeout(600)]

# Planted where somebody may put one without thinking.
WEBHOOK, SETTING, LABEL = (
    "Wh00k-planted-secret",
    "S3tting-planted",
    "pl4nted-in-a-setting",
)
PAGES = (
    "",
    "campaigns/",
    "servers/",
    "servers/keys/",
    "tokens/",
    "webhooks/",
    "audit/",
    "projects/",
    "configurations/",
    "hardware/",
    "schedules/",
    "compare/",
    "workloads/",
)
ANSWERS = (
    "campaigns/",
    "servers/",
    "runs/",
    "configurations/",
    "webhooks/",
    "audit/",
    "schema/",
)


@pytest.fixture(scope="module")
def variables(instance: Instance):
    lines = (instance.var / "environment").read_text().splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name: value.strip("\"'") for name, _is, value in pairs}


@pytest.fixture
def token(instance: Instance):
    """A token that may all, made on the machine."""
    kept_out = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BENCHLAB_ENCRYPTION_KEY"}
    environment = {
        name: each for name, each in os.environ.items() if name not in kept_out
    }
    made = subprocess.run(
        [sys.executable, "manage.py", "create_token", "secrets", "--scopes", "admin"],
        env=environment | {"BENCHLAB_VAR": str(instance.var)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


@pytest.fixture
def ask(instance: Instance, token):
    """The text of an answer to who has the token; with a body it is a POST."""

    def asked(path, body=None):
        request = urllib.request.Request(
            f"{instance.url}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    return asked


def planted(admin, instance, ask):
    """Put secrets into an instance, as people do; the private key that was uploaded."""
    private, _public = generate_private_key()
    ask("webhooks/", {"url": "https://hooks.example.org/", "secret": WEBHOOK})
    conninfo = f"host=a user=b password={SETTING}"
    given = {
        "version": "18.1",
        "settings": {"primary_conninfo": conninfo, "ext.api_token": LABEL},
    }
    run = {
        "campaign": "planted",
        "scenario": "tpcb-like",
        "levels": {"clients": 1},
        "started_at": "2026-01-31T02:00:00Z",
        "status": "finished",
        "postgresql": given,
        "measurements": [
            {"metric": "tps", "value": 1, "unit": "tps", "direction": "higher"}
        ],
    }
    ask("uploads/", run)
    admin.goto(f"{instance.url}/servers/keys/")
    admin.fill("#upload_name", "planted")
    admin.fill("#upload_private_key", private)
    admin.locator("form", has=admin.locator("#upload_private_key")).locator(
        "[type=submit]"
    ).click()
    return private


def texts(instance, admin, ask, slug):
    """Everything that people, programs and whoever reads the disk get to see."""
    for page in PAGES:
        yield f"page {page}", admin.request.get(f"{instance.url}/{page}").text()
    for answer in ANSWERS:
        yield f"answer {answer}", ask(answer)
    for campaign in (slug, "planted"):
        yield (
            f"page {campaign}",
            admin.request.get(f"{instance.url}/campaigns/{campaign}/").text(),
        )
        for run in json.loads(ask(f"runs/?campaign={campaign}"))["results"][:3]:
            address = f"{instance.url}/runs/{run['id']}/"
            yield f"page run {run['id']}", admin.request.get(address).text()
            yield f"answer run {run['id']}", ask(f"runs/{run['id']}/")
            yield "script", admin.request.get(f"{address}script/").text()
    yield "export", ask("projects/default/export/")
    for log in (instance.var / "logs").iterdir():
        yield f"log {log.name}", log.read_text(errors="replace")
    for file in (instance.var / "artifacts").resolve().rglob("*.gz"):
        yield (
            f"artifact {file.name}",
            gzip.decompress(file.read_bytes()).decode(errors="replace"),
        )


def dump(url):
    """Every row of every table, as a dump of the database has it."""
    with psycopg.connect(url) as connection:
        listed = connection.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (table,) in listed:
            rows = connection.execute(f"SELECT t::text FROM {table} t").fetchall()
            yield f"table {table}", "\n".join(row for (row,) in rows)


def held(url):
    """What Redis has."""
    client = redis.Redis.from_url(url)
    for key in client.scan_iter():
        value = client.dump(key) or b""
        yield f"Redis {key!r}", (key + value).decode("latin-1")


def test_no_secret_is_in_a_log_artifact_page_answer_export_or_dump(
    admin, instance: Instance, first_campaign, variables, token, ask
):
    private = planted(admin, instance, ask)
    secrets = {
        "SECRET_KEY": variables["SECRET_KEY"],
        "encryption key": variables["BENCHLAB_ENCRYPTION_KEY"],
        "database password": urlsplit(variables["DATABASE_URL"]).password,
        "Redis password": urlsplit(variables["REDIS_URL"]).password,
        "administrator's password": instance.password,
        "token": token.rpartition("_")[2],
        "webhook secret": WEBHOOK,
        "password in a setting": SETTING,
        "token in a setting": LABEL,
        "private SSH key": private.splitlines()[2],
        "seal key": sealing_key(instance),
    }
    assert all(secrets.values())
    found, looked_at = [], set()
    everything = texts(instance, admin, ask, first_campaign["slug"])
    for places in (
        everything,
        dump(variables["DATABASE_URL"]),
        held(variables["REDIS_URL"]),
    ):
        for place, text in places:
            looked_at.add(place.partition(" ")[0])
            found += [
                (name, place) for name, secret in secrets.items() if secret in text
            ]

    assert found == []
    assert looked_at >= {
        "page",
        "answer",
        "export",
        "log",
        "artifact",
        "table",
        "Redis",
    }


def sealing_key(instance):
    """The secret half, as its file has it; the first campaign was sealed with it."""
    (found,) = (instance.var / "seals").resolve().glob("*.pem")
    return found.read_text().splitlines()[1]
