"""A server with all versions, and the designs of places for it."""

import pytest

from runs.configurations.services import configurations
from tests import factories

EXTENSIONS = [
    "pg_prewarm",
    "postgres_fdw",
    "pg_trgm",
    "pg_bigm",
    "pgroonga",
    "pg_buffercache",
]


def programs(version):
    number = factories.version_num(version)
    return {"has_psql": True, "pgbench_version_num": number, "extensions": EXTENSIONS}


@pytest.fixture
def server(db):
    configurations.sync()
    made = factories.server("lab", free_bytes=10**15)
    for version in ("9.3.25", "9.6.24", "10.23", "16.14", "18.4"):
        factories.installation(made, version, block_size=8192, **programs(version))
    for size in (16384, 32768):
        bindir = f"/opt/{size}/bin"
        factories.installation(
            made, "18.4", bindir=bindir, block_size=size, **programs("18.4")
        )
    return made


@pytest.fixture
def asked(client):
    def of(slug, quick="false"):
        return client.get(
            f"/api/v1/campaigns/{slug}/reproduction/?server=lab&quick={quick}"
        )

    return of


@pytest.fixture
def post(client, bearer):
    def sent(body):
        return client.post(
            "/api/v1/campaigns/", body, "application/json", headers=bearer
        )

    return sent
