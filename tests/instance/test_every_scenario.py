"""Every scenario in its quick form, by the API and from the browser, on a whole instance.

Both ways begin where a user does: at a published table, and at the scenario where none is printed.
"""

import json
import os
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.scenarios import registry
from tests.instance.conftest import (
    REPOSITORY,
    Instance,
    environment,
    manage,
    new_token,
)

pytestmark = [
    pytest.mark.instance,
    pytest.mark.slow,
    pytest.mark.on_disk,
    pytest.mark.timeout(1500),
]

LAB = "16.10"  # with contrib, which the wheels lack
SECONDS = 1200.0
PLACES = {
    "fixed-point-read": "wg1-2013-2-2",
    "fixed-point-update": "wg1-2017-fixed-point-update",
    "page-checksums": "wg1-2013-2-3",
    "cpu-cores": "wg1-2013-2-5",
    "partitioning": "wg1-2013-3-5",
    "partitioning-search": "wg1-2013-3-search",
    "partitioning-maintenance": "wg1-2013-3-6",
    "storage-bandwidth": "wg1-2013-4-fio",
    "storage-placement": "wg1-2013-4-5",
    "scale-out": "wg1-2013-5-5",
    "operating-systems": "wg1-2017-5-3",
    "parallel-query": "wg1-2017-6-8",
    "full-text-inserts": "wg1-2017-7-7",
    "full-text-search": "wg1-2017-7-8",
    "replication": "wg1-2017-8-10",
    "foreign-tables": "wg1-2017-9-3",
    "block-size": "block-size-2012-load",
    "long-run-stability": "stability-8-2",
}
WITHOUT_PLACE = ("pgbench", "command")


def test_no_scenario_is_left_out():
    assert {*PLACES, *WITHOUT_PLACE} == {each.slug for each in registry.every()}


@pytest.fixture(scope="module")
def lab(instance: Instance) -> str:
    """The server of this machine, with a PostgreSQL that has contrib; its slug."""
    made = subprocess.run(
        [str(REPOSITORY / "script/lab"), LAB, "--register"],
        env=environment(instance),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (server,) = instance.get("servers/")["results"]
    put_command(instance)
    return str(server["slug"])


def put_command(instance: Instance) -> None:
    """What the owner of the server has `command` execute."""
    asked = "from runs.models import Server; print(Server.objects.get().base_dir)"
    base = Path(manage(instance, "shell", "-v", "0", "-c", asked))
    folder = base / "commands"
    folder.mkdir()
    path = folder / "bench.sh"
    path.write_text("#!/bin/sh\nexec psql -XAtc 'SELECT pg_sleep(1)'\n")
    path.chmod(0o755)
    for created in (folder, path):
        os.chown(created, base.stat().st_uid, base.stat().st_gid)


@pytest.fixture(scope="module")
def token(instance: Instance) -> str:
    return new_token(instance, "scenarios", "--scopes", "read,queue")


def sent(instance: Instance, token: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(
        f"{instance.url}/api/v1/campaigns/",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["slug"])


def is_finished(instance: Instance, slug: str) -> None:
    """Every run has a result: none failed, and none was given up."""

    def ended() -> dict[str, Any] | None:
        found = dict(instance.get(f"campaigns/{slug}/"))
        return None if found["state"] in {"queued", "running"} else found

    found = instance.wait_for(ended, SECONDS)
    failed = instance.get(f"runs/?campaign={slug}&state=failed")["results"]
    assert found["runs"].keys() == {"finished"}, [
        each.get("failure") or each for each in failed
    ]


def design(instance: Instance, slug: str, server: str) -> dict[str, Any]:
    """The body for the quick form of a scenario."""
    if slug in PLACES:
        asked = f"campaigns/{PLACES[slug]}/reproduction/?server={server}&quick=true"
        return dict(instance.get(asked)["campaign"])
    quick = registry.get(slug).quick
    levels = {name: list(values) for name, values in quick.levels.items()}
    return {
        "title": slug,
        "scenario": slug,
        "server": server,
        "versions": ["18"],
        "levels": levels,
        "parameters": quick.parameters,
        "repeats": quick.repeats,
    }


@pytest.mark.parametrize("slug", [*PLACES, *WITHOUT_PLACE])
def test_a_quick_form_finishes_by_the_api(
    instance: Instance, lab: str, token: str, slug: str
):
    # A doubtful run would be measured again, and on a busy machine all are.
    body = design(instance, slug, lab) | {"remeasures": 0, "repeats": 1}
    is_finished(instance, sent(instance, token, body))


@pytest.mark.browser
@pytest.mark.parametrize("slug", [*PLACES, *WITHOUT_PLACE])
def test_a_quick_form_finishes_from_the_browser(
    instance: Instance, lab: str, admin_throughout: Page, slug
):
    admin = admin_throughout
    faults: list[str] = []
    admin.on(
        "console",
        lambda said: faults.append(said.text) if said.type == "error" else None,
    )
    if slug in PLACES:
        admin.goto(f"{instance.url}/campaigns/{PLACES[slug]}/")
        admin.get_by_role("link", name="Reproduce quickly").click()
    else:
        admin.goto(f"{instance.url}/campaigns/new/?scenario={slug}&server={lab}")
        for name, value in registry.get(slug).quick.parameters.items():
            admin.fill(f"[name={name}]", str(value))
    # What is seldom needed is folded.
    admin.locator("form details").evaluate_all(
        "folds => folds.forEach(fold => { fold.open = true })"
    )
    for name in ("remeasures", "repeats"):
        admin.fill(f"[name={name}]", str(int(name == "repeats")))
    admin.click("main form [type=submit]:not([formaction])")
    admin.wait_for_url(re.compile("/campaigns/(?!new)"), timeout=90_000)
    made = admin.url.rstrip("/").rpartition("/")[2]
    is_finished(instance, made)
    admin.goto(f"{instance.url}/campaigns/{made}/")
    expect(admin.locator(".chart__wide svg").first).to_be_visible()
    assert faults == []
