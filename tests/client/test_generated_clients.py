"""Clients that others generate from the API's description: they upload, and read what they stored.

Python by openapi-python-client, TypeScript by openapi-typescript, checked by tsc and run by
Node. Both are installed into a folder of the test, so that it is slow.
"""

import json
import os
import subprocess
import sys

import pytest
from django.test import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PYTHON = ("openapi-python-client==0.29.1",)
TYPESCRIPT = (
    "openapi-typescript@7.13.0",
    "openapi-fetch@0.17.0",
    "typescript@5.9.3",
    "@types/node@22",
)
RUN = {
    "campaign": "generated",
    "scenario": "tpcb-like",
    "levels": {"clients": 8},
    "started_at": "2026-01-31T02:00:00Z",
    "status": "finished",
    "postgresql": {"version": "18.1"},
    "tool": "pgbench",
    "hardware": {"cores": 4},
    "measurements": [
        {"metric": "tps", "value": 1000.5, "unit": "tps", "direction": "higher"}
    ],
}

IN_PYTHON = """
import json, os, sys
from api_client import AuthenticatedClient
from api_client.api.runs import runs_retrieve
from api_client.api.uploads import uploads_create
from api_client.models import UploadedRun

url, token = os.environ["BENCHLAB_URL"], os.environ["BENCHLAB_TOKEN"]
client = AuthenticatedClient(base_url=url, token=token)
body = UploadedRun.from_dict(json.loads(sys.stdin.read()))
stored = uploads_create.sync(client=client, body=body)
run = runs_retrieve.sync(stored.id, client=client)
wrong = UploadedRun.from_dict({**body.to_dict(), "levels": {"repeat": 1}})
problem = uploads_create.sync_detailed(client=client, body=wrong).parsed
print(json.dumps({"id": run.id, "value": run.measurements[0].value, "repeat": stored.repeat,
                  "remedy": problem.errors[0].remedy}))
"""

IN_TYPESCRIPT = """
import createClient from "openapi-fetch";
import { readFileSync } from "node:fs";
import type { paths, components } from "./schema.js";

const headers = { Authorization: `Bearer ${process.env.BENCHLAB_TOKEN}` };
const client = createClient<paths>({ baseUrl: process.env.BENCHLAB_URL, headers });
const body: components["schemas"]["UploadedRun"] = JSON.parse(readFileSync(0, "utf8"));
const sent = await client.POST("/api/v1/uploads/", { body });
const stored = sent.data!;
const path = { id: stored.id };
const { data: run } = await client.GET("/api/v1/runs/{id}/", { params: { path } });
const wrong = await client.POST("/api/v1/uploads/", { body: { ...body, levels: { repeat: 1 } } });
console.log(JSON.stringify({ id: run!.id, value: run!.measurements[0].value, repeat: stored.repeat,
  remedy: wrong.error!.errors[0].remedy }));
"""


def do(argv, folder, *, stdin="", **environment):
    done = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def install(argv, folder):
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{argv[0]} cannot install: {done.stderr[-300:]}")


@pytest.fixture
def schema(db, tmp_path):
    path = tmp_path / "schema.json"
    path.write_bytes(Client().get("/api/v1/schema/?format=json").content)
    return path


def check(told, repeat):
    found = json.loads(told)
    assert found["value"] == 1000.5
    assert found["repeat"] == repeat
    assert "round" in found["remedy"]


def test_a_generated_python_client_uploads_and_reads(schema, reach, tmp_path):
    install([sys.executable, "-m", "venv", "own"], tmp_path)
    install(["own/bin/pip", "install", "-q", *PYTHON], tmp_path)
    (tmp_path / "config.yml").write_text(
        "package_name_override: api_client\npost_hooks: []\n"
    )
    told = ["--path", str(schema), "--config", "config.yml", "--output-path", "made"]
    do(["own/bin/openapi-python-client", "generate", *told], tmp_path)
    script = tmp_path / "made" / "use.py"
    script.write_text(IN_PYTHON)

    own = str(tmp_path / "own" / "bin" / "python")
    for repeat in (1, 2):
        check(
            do([own, "use.py"], tmp_path / "made", stdin=json.dumps(RUN), **reach),
            repeat,
        )


def test_a_generated_typescript_client_uploads_and_reads(schema, reach, tmp_path):
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    install(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", *TYPESCRIPT], tmp_path
    )
    bin_ = tmp_path / "node_modules" / ".bin"
    do([bin_ / "openapi-typescript", schema, "-o", "schema.d.ts"], tmp_path)
    (tmp_path / "use.ts").write_text(IN_TYPESCRIPT)
    strict = [
        "--strict",
        "--skipLibCheck",
        "--target",
        "es2022",
        "--module",
        "nodenext",
    ]
    do([bin_ / "tsc", *strict, "--types", "node", "use.ts"], tmp_path)

    for repeat in (1, 2):
        check(do(["node", "use.js"], tmp_path, stdin=json.dumps(RUN), **reach), repeat)
