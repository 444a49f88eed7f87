"""A campaign repeated by benchlab-versions on a machine that BenchLab does not log in to."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from benchlab.embedded.account import service_account
from runs.campaigns.selectors.plans_by_hand import plan_by_hand
from runs.campaigns.services import campaigns
from runs.models import Campaign, Run
from tests import factories
from tests.client.conftest import Done
from tests.each import some
from tests.ssh.initialised import quick_bindir

ROOT = Path(__file__).parents[2]


@pytest.fixture
def follow(reach, plain, bindir, test_folder):
    """Follow a plan, as root where the tests are, and give what the program left."""
    account = service_account()
    bindir = quick_bindir(bindir, test_folder, account)
    folder = Path(tempfile.mkdtemp(dir=test_folder))
    folder.chmod(0o711)

    def ran(slug, *options, number=0, moment=None):
        out, err = folder / "out", folder / "err"
        argv = [sys.executable, "-m", "runs.pair.versions", "--campaign-run", slug]
        argv += ["--bindir", bindir, "--work", folder, *options]
        env = (
            plain
            | reach
            | {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
        )
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                argv, env=env, cwd=ROOT, stdout=stdout, stderr=stderr
            )
            try:
                if number:
                    wait_for(lambda: moment(folder), process)
                    os.kill(process.pid, number)
                status = process.wait(timeout=240)
            except subprocess.TimeoutExpired:
                process.terminate()
                raise
        assert not list(folder.glob("benchlab-run-*"))
        assert not serving_below(folder)
        return Done(status, out.read_text(), err.read_text())

    yield ran
    shutil.rmtree(folder)


def wait_for(moment, process):
    """Until the client has come so far; it must not have ended before."""
    while not moment():
        assert process.poll() is None, "ended before"
        time.sleep(0.01)


def serving_below(folder):
    """Command lines of what still runs there."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = each.read_bytes().replace(b"\0", b" ").decode()
            found += [line] if f"{folder}/benchlab-run-" in line else []
    return found


@pytest.fixture
def planned(token):
    """A function that queues a campaign of two configurations on version 18."""
    server = factories.server("lab")
    factories.installation(server, "18.4", has_psql=True, pgbench_version_num=180004)
    used = [
        factories.configuration(slug, settings={"shared_buffers": size, "fsync": "off"})
        for slug, size in (("small", "8MB"), ("large", "32MB"))
    ]

    def made(scenario, repeats=1):
        given = {
            "configuration": used[0],
            "more_configurations": used[1:],
            "repeats": repeats,
        }
        return campaigns.create(
            draft=factories.draft(server, scenario=scenario, **given)
        )

    return made


@pytest.mark.parametrize(
    "scenario",
    ["fixed-point-read", pytest.param("fixed-point-update", marks=pytest.mark.slow)],
)
def test_a_campaign_is_repeated_here_and_each_run_uploaded(follow, planned, scenario):
    campaign = planned(scenario, repeats=2)
    done = follow(campaign.slug, "--campaign", "elsewhere", "--no-revision")
    assert done.status == 0, done.err
    made = Campaign.objects.get(slug="elsewhere")
    runs = list(Run.objects.filter(campaign=made).select_related("cell", "settings"))
    assert Counter(run.cell.levels["configuration"] for run in runs) == {
        "small": 2,
        "large": 2,
    }
    assert all(run.measurements.filter(metric__name="tps").exists() for run in runs)
    settings = {run.cell.levels["configuration"]: run.settings.settings for run in runs}
    assert settings["small"]["shared_buffers"] != settings["large"]["shared_buffers"]
    assert "run 4 of 4" in done.err


def test_a_campaign_without_such_a_plan_is_told(follow):
    factories.campaign("uploads", origin="uploaded")
    done = follow("uploads")
    assert done.status == 65
    assert "no plan of uploads" in done.err


def test_versions_that_are_not_here_are_told(follow, planned):
    campaign = planned("fixed-point-read")
    campaign.cells.update(version="9.2.24")
    done = follow(campaign.slug)
    assert done.status == 64
    assert "none of the campaign's versions is here" in done.err


def is_begun(pattern):
    """A moment: the file is there."""
    return lambda folder: any(folder.glob(f"benchlab-run-*/cluster-*/{pattern}"))


MOMENTS = {
    "initdb": is_begun("initdb.out"),
    "start": is_begun("pg_ctl.out"),
    "load of the tables": is_begun("pgbench.out"),
    "warming": is_begun("psql.out"),
    "load": lambda folder: any(" -T " in each for each in serving_below(folder)),
}


@pytest.mark.parametrize(
    ("moment", "number"),
    some(
        itertools.product(MOMENTS, (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)),
        each=2,
    ),
)
def test_a_signal_leaves_nothing_behind_whenever_it_comes(
    follow, planned, moment, number
):
    campaign = planned("fixed-point-read")
    elsewhere = ("--campaign", "elsewhere", "--no-revision")
    done = follow(campaign.slug, *elsewhere, number=number, moment=MOMENTS[moment])
    assert done.status == -number, done.err
    assert "stopped" in done.err
    assert not Run.objects.filter(campaign__slug="elsewhere").exists()


def test_what_was_measured_again_is_not_repeated(planned):
    campaign = planned("fixed-point-read")
    again = campaign.runs.order_by("pk").first()
    factories.run(again.cell, repeat=2, plan=again.plan, again_of=again, position=3)
    factories.run(again.cell, repeat=3, plan=again.plan, position=4)
    assert [each["round"] for each in plan_by_hand(campaign)["order"]] == [1, 1]
