"""From an invitation to a commented pull request, by docs/ci.md alone: clicks and commands."""

import os
import re
import time

import pytest
import yaml
from playwright.sync_api import Browser, Page

from tests.client.conftest import NOT_OURS
from tests.client.forge import Forge
from tests.client.test_ci_docs import PAGE, Checkout
from tests.client.test_comment import PULL, Actions

pytestmark = [
    pytest.mark.instance,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
# An instance of its own, without a first campaign: the minutes are counted.
FIRST_RUN_SECONDS = 0
# Each measurement of a minute is replayed at once.
LIMIT_SECONDS = 600 - 6 * 60


def invited(admin: Page, url: str) -> str:
    """The link that a maintainer sends to a new person."""
    admin.goto(f"{url}/projects/")
    admin.get_by_role("link", name="Members and invitations").click()
    admin.select_option("[name=role]", "operator")
    admin.click("main .button--primary[type=submit]")
    found = re.search(rf"{url}/invitations/[^/\s<\"]+/", admin.content())
    assert found
    return found.group()


def with_a_token(page: Page, url: str, link: str) -> tuple[str, dict]:
    """Make the account and a token; the token, and the step that the page shows."""
    page.goto(link)
    page.click("main .button--primary")
    page.fill("[name=username]", "kenji")
    for name in ("password1", "password2"):
        page.fill(f"[name={name}]", "Benkyo-2026-x")
    page.click("main .button--primary[type=submit]")
    page.wait_for_url(f"{url}/")
    page.click("footer a[href='/tokens/']")
    page.fill("[name=name]", "CI of demo")
    page.click("#make .button--primary[type=submit]")
    steps = yaml.safe_load(page.inner_text("#token-step"))
    return page.inner_text("#token-text").strip(), steps


def test_a_new_user_has_a_commented_pull_request_within_ten_minutes(
    admin: Page, chromium: Browser, instance, tmp_path
):
    began = time.monotonic()
    link = invited(admin, instance.url)
    with chromium.new_context() as context:
        token, steps = with_a_token(context.new_page(), instance.url, link)
    documented = PAGE.partition("\n## In the pull request\n")[2]
    job = yaml.safe_load(re.search(r"```yaml\n(.*?)```", documented, re.DOTALL)[1])[
        "jobs"
    ]
    of_docs = [job["pgbench"]["steps"][-1], job["report"]["steps"][-1]]
    assert steps == [
        each | {"with": each["with"] | {"url": instance.url}} for each in of_docs
    ]
    step = steps[0]

    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(NOT_OURS)
    }
    (tmp_path / "work").mkdir()
    here = Checkout(
        tmp_path / "work", plain | {"HOME": str(tmp_path)} | job["pgbench"]["env"]
    )
    reach = {"BENCHLAB_URL": step["with"]["url"], "BENCHLAB_TOKEN": token}
    inputs = {name: step["with"][name] for name in ("campaign", "scenario", "run")}
    with Forge() as forge:
        actions = Actions(here, forge, reach)
        here.replay.measure("18.6")
        assert actions.uses({}, **inputs) == 0, actions.out
        here.commit("topic")
        here.replay.measure("18.6", factor=0.7)
        assert actions.uses(PULL, **inputs) == 1, actions.out
        (comment,) = forge.own()
    assert "### 🔴 Slower" in comment["body"]
    assert forge.checks[-1]["conclusion"] == "failure"
    assert time.monotonic() - began < LIMIT_SECONDS
