"""Bisections over the API: who may ask, what is refused, and the answer for a pull request."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from runs.models import Bisection, Build, Campaign, Revision, Run
from runs.services.access import projects
from runs.services.campaigns import bisections, scenarios
from runs.services.servers import builds
from tests import factories

pytestmark = pytest.mark.django_db
BASE, HEAD = "a" * 40, "b" * 40
GIVEN = {
    "campaign": "nightly", "base": f"revision:{BASE}", "head": f"revision:{HEAD}",
    "server": "lab", "scenario": "fixed-point-read", "levels": {"clients": [2]},
    "parameters": {"scale": 1, "duration": 5},
}  # fmt: skip


@pytest.fixture
def lab(db, project):
    scenarios.sync()
    made = factories.server("lab")
    for sha in (BASE, HEAD):
        more = {"has_psql": True, "pgbench_version_num": 180004}
        factories.installation(made, "18.4", bindir=f"/builds/{sha[:9]}/bin", **more)
    return made


@pytest.fixture
def nightly(project):
    of = factories.campaign(
        "nightly", factors={"version": []}, origin="uploaded", repeats=0, project=project
    )
    for sha, values in ((BASE, (990, 1010, 1000)), (HEAD, (950, 1010, 980))):
        revision = Revision.objects.create(project=project, sha=sha, ref="main")
        cell = factories.cell(of, {"clients": 2}, revision=revision, key=sha, series_key="2")
        for run, value in zip(cell.runs.order_by("repeat"), values, strict=True):
            factories.finish(run, tps=value)
    return of


@pytest.fixture
def post(client, bearer):
    def sent(body, path="bisections/", headers=bearer):
        return client.post(f"/api/v1/{path}", body, "application/json", headers=headers)

    return sent


def test_a_verdict_is_settled_once_and_its_report_ends_the_comparison(
    client, post, get, lab, nightly
):
    answer = post(GIVEN)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["state"], made["verdict"], made["exit_code"]) == ("running", "", None)
    assert [build["commit"] for build in made["builds"]] == [BASE, HEAD]
    assert "Being measured in turn on lab" in made["report"]
    again = post(GIVEN)
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    (step,) = made["steps"]
    of = Campaign.objects.get(slug=step["campaign"])
    assert (of.repeats, of.most_repeats, of.project) == (3, 20, nightly.project)

    for number, run in enumerate(of.runs.select_related("cell__installation").order_by("pk")):
        level = 0.95 if HEAD[:9] in run.cell.installation.bindir else 1.0
        factories.finish(run, tps=1000 * level * (1 + 0.002 * (number % 3)))
    Campaign.objects.filter(pk=of.pk).update(state="finished")
    bisections.go_on()

    found = get(f"bisections/{made['id']}/")
    assert (found["state"], found["verdict"], found["exit_code"]) == ("finished", "slower", 1)
    assert found["culprit"] == HEAD
    assert found["report"].startswith("### 🔴 Slower")
    assert f"**`{HEAD[:12]}` made it slower**" in found["report"]
    sides = {"campaign": "nightly", "base": GIVEN["base"], "head": GIVEN["head"]}
    text = client.get("/api/v1/compare/", sides | {"format": "md"}).content.decode()
    assert found["report"].strip() in text
    assert [each["id"] for each in get("bisections/")["results"]] == [made["id"]]

    later = post(GIVEN).json()["id"]
    bisections.cancel(bisection=Bisection.objects.get(pk=later))
    for changed, is_same in (({}, True), ({"effect": "4"}, False), ({"metric": "tps"}, False)):
        asked = sides | changed | {"format": "md"}
        text = client.get("/api/v1/compare/", asked).content.decode()
        assert (found["report"].strip() in text) == is_same, changed


def test_what_is_wrong_is_refused_with_its_place_and_nothing_is_queued(post, lab, nightly):
    cases = [
        ({"server": None}, 400, "/server", "null"),
        ({"server": "away"}, 400, "/server", "does_not_exist"),
        ({"server": ["lab"]}, 400, "/server", "does_not_exist"),
        ({"base": "revision:\u0000"}, 400, "/", "not_storable"),
        ({"base": "x" * 301}, 400, "/base", "max_length"),
        ({"base": GIVEN["head"]}, 422, "/base", "same_commit"),
        ({"head": "run:99999999999999999999"}, 422, "/head", "unknown_run"),
        ({"effect": float("1e9")}, 400, "/effect", "max_value"),
        ({"effect": 0}, 400, "/effect", "min_value"),
        ({"repeats": 1}, 400, "/repeats", "min_value"),
        ({"repeats": 5, "most_repeats": 5}, 400, "/most_repeats", "out_of_range"),
        ({"most_repeats": 10**9}, 400, "/most_repeats", "max_value"),
        ({"commits": ["; rm -rf /"]}, 400, "/commits/0", "invalid"),
        ({"commits": ["c" * 40] * 999}, 400, "/commits", "max_length"),
        ({"commits": ["c" * 40], "bindirs": ["/a", "/b"]}, 400, "/commits", "contradicts"),
        ({"bindirs": ["/builds"]}, 400, "/bindirs", "min_length"),
        ({"bindirs": ["../../etc", "/bin"]}, 422, "/bindirs/0", "installation_missing"),
        ({"levels": {"clients": [0]}}, 422, "/levels/clients", "out_of_range"),
        ({"levels": {"bananas": [1]}}, 422, "/levels", "unknown_factor"),
        ({"levels": {"clients": [{"a": 1}]}}, 400, "/levels/clients/0", "not_a_level"),
        ({"parameters": {"duration": 0}}, 422, "/parameters/duration", "out_of_range"),
        ({"parameters": {"bananas": 1}}, 422, "/parameters/bananas", "unknown_parameter"),
        ({"builds": []}, 400, "/builds", "unknown_field"),
    ]  # fmt: skip
    found = []
    for changed, *_expected in cases:
        answer = post(GIVEN | changed)
        faults = [(each["pointer"], each["code"]) for each in answer.json().get("errors", [])]
        found.append((changed, answer.status_code, faults[:1]))
    assert [each for each, case in zip(found, cases, strict=True)
            if each[1:] != (case[1], [case[2:]])] == []  # fmt: skip
    assert not Bisection.objects.exists()
    assert Campaign.objects.count() == 1


def test_who_may_not_queue_there_settles_nothing(client, post, make_token, lab, nightly):
    reading = {"Authorization": f"Bearer {make_token('read', 'upload')}"}
    other = projects.create(slug="other", is_public=True)
    foreign = {"Authorization": f"Bearer {make_token(of=other)}"}
    assert post(GIVEN, headers=reading).status_code == 403
    assert post(GIVEN, headers=foreign).status_code == 403
    assert post(GIVEN, headers={}).status_code in (401, 403)
    made = post(GIVEN).json()
    assert post({}, f"bisections/{made['id']}/cancel/", foreign).status_code == 403
    nightly.project.is_public = False
    nightly.project.save()
    Bisection.objects.update(project=nightly.project)
    assert client.get(f"/api/v1/bisections/{made['id']}/", headers=foreign).status_code == 404
    assert client.get(f"/bisections/{made['id']}/").status_code == 404
    hidden = post(GIVEN, headers=foreign)
    assert (hidden.status_code, hidden.json()["errors"][0]["code"]) == (422, "unknown_campaign")
    assert post({}, f"bisections/{made['id']}/cancel/").json()["state"] == "cancelled"


def test_what_may_differ_is_part_of_the_question(client, post, lab, nightly):
    for sha, name in ((BASE, "older"), (HEAD, "newer")):
        runs = Run.objects.filter(cell__revision__sha=sha)
        runs.update(hardware=factories.hardware(name))
    assert post(GIVEN).status_code == 409
    made = post(GIVEN | {"ignore": ["hardware"]})
    assert made.status_code == 201, made.content
    assert post(GIVEN | {"ignore": ["bananas"]}).status_code == 400
    bisection = Bisection.objects.get()
    assert bisection.asked["ignore"] == ["hardware"]
    sides = {"campaign": "nightly", "base": GIVEN["base"], "head": GIVEN["head"], "format": "md"}
    for ignored, is_same in (("hardware", True), ("", False)):
        asked = sides | ({"ignore": ignored} if ignored else {})
        text = client.get("/api/v1/compare/", asked).content.decode()
        assert ("Being measured in turn" in text) == is_same


def test_who_waits_shows_it_by_asking(client, post, bearer, lab, nightly):
    made = post(GIVEN | {"wait_seconds": 60}).json()
    long_ago = timezone.now() - timedelta(seconds=50)
    for headers, counts in (({}, False), (bearer, True)):
        Bisection.objects.update(awaited_at=long_ago)
        client.get(f"/api/v1/bisections/{made['id']}/", headers=headers)
        assert (Bisection.objects.get().awaited_at > long_ago) == counts


def test_what_is_built_and_what_could_not_be_built_is_told(client, post, get, lab, nightly):
    lab.installations.filter(bindir__contains=HEAD[:9]).delete()
    assert post(GIVEN).status_code == 422
    call_command("allow_builds", "lab", "--from", "/srv/pg.git", "--configure=--without-icu")
    made = post(GIVEN).json()
    assert (made["state"], made["steps"]) == ("running", [])
    assert f"`{HEAD[:12]}` is being built on lab." in made["report"]
    assert [each["state"] for each in made["builds"]] == ["", "waiting"]
    assert Build.objects.get().options == ["--without-icu"]
    sides = {"campaign": "nightly", "base": GIVEN["base"], "head": GIVEN["head"], "format": "md"}
    assert "is being built" in client.get("/api/v1/compare/", sides).content.decode()

    log = "one.c:1: error: x\n```\n# no heading of ours\n"
    failed = {"state": "failed", "code": "build_failed", "message": builds.WORDS["build_failed"]}
    Build.objects.update(log=log, **failed)
    bisections.go_on()
    found = get(f"bisections/{made['id']}/")
    assert (found["state"], found["exit_code"]) == ("failed", None)
    assert (found["builds"][1]["code"], found["builds"][1]["log"]) == ("build_failed", log)
    assert "(`build_failed`): configure, make" in found["report"]
    assert found["report"].count("```") == 2
    page = client.get(f"/bisections/{made['id']}/").content.decode()
    assert "one.c:1: error: x" in page
    assert "A commit could not be built" in page
    assert found["message"] == bisections.BUILD_FAILED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["away", "--from", "/srv/pg.git"], "there is no server away"),
        (["lab", "--from", "../pg"], "not a path"),
        (["lab", "--from", "/srv/pg;id"], "not a path"),
        (["lab", "--from", "/srv/pg", "--configure=--prefix=/usr"], "BenchLab's to say"),
    ],
)
def test_builds_are_not_allowed_with_what_is_not_plain(lab, words, said):
    with pytest.raises(CommandError, match=said):
        call_command("allow_builds", *words)
    lab.refresh_from_db()
    assert (lab.build_from, lab.build_options) == ("", [])


def test_the_form_settles_a_verdict_and_the_page_says_the_answer(client, log_in_as, lab, nightly):
    log_in_as("operator")
    query = f"s=nightly~revision={BASE[:12]}&s=nightly~revision={HEAD[:12]}"
    page = client.get(f"/compare/?{query}&base=nightly~revision={BASE[:12]}").content.decode()
    assert "/bisections/new/?base=campaign%3Anightly" in page
    sides = {
        "base": f"campaign:nightly~revision={BASE}",
        "head": f"campaign:nightly~revision={HEAD}",
    }
    form = client.get("/bisections/new/", sides | {"metric": "tps"})
    assert 'name="server"' in form.content.decode()
    given = sides | {"metric": "tps", "server": "lab", "scenario": "fixed-point-read"}
    given |= {"levels": "clients=2", "builds": "", "repeats": 3, "most_repeats": 9}
    refused = client.post("/bisections/new/", given | {"builds": "1234567"})
    assert "no installation of 1234567" in refused.content.decode()
    assert "clients=8" in client.post("/bisections/new/", given | {"levels": "x"}).content.decode()
    done = client.post("/bisections/new/", given)
    made = Bisection.objects.get()
    assert done.headers["Location"] == f"/bisections/{made.pk}/"
    page = client.get(done.headers["Location"]).content.decode()
    assert made.steps.get().campaign.slug in page
    client.post(f"/bisections/{made.pk}/cancel/")
    made.refresh_from_db()
    assert made.state == Bisection.State.CANCELLED
