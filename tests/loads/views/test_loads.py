"""Pages of loads: bring one, see what was read, measure it, read the answer; for members only."""

import gzip
import html
import io
import random
import re
import zipfile

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.translation import override

from runs.access.services import projects
from runs.execution.plan import RunPlan
from runs.execution.reporter import ArtifactData
from runs.loads.services import dumps, loads, results
from runs.loads.services.loads import Brought
from runs.models import Campaign, Load, LoadPart, Membership, Project, Run, Server
from runs.queue.services import load_contents
from runs.statements import content, trial
from runs.statements.found import Found, FoundUnit, FoundWhole
from runs.statements.plan_shape import PlanShape, ShapeNode
from runs.statements.trial import TrialTimes
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db

SECRET = "nobody-else-reads-this"
OCTETS = "application/octet-stream"
STATEMENTS = f"""
SELECT count(*) FROM orders WHERE note = '{SECRET}';
SELECT count(*) FROM items;
UPDATE orders SET note = NULL WHERE id = 5;
COPY orders FROM stdin;
"""
DATA = "CREATE TABLE orders (id integer, note text); CREATE TABLE items (id integer);"


@pytest.fixture
def project(db):
    return Project.objects.create(slug="shop", name="Shop", is_public=True)


@pytest.fixture
def member(client, project):
    user = User.objects.create_user("operator", password="x")
    Membership.objects.create(user=user, project=project, role=Membership.Role.OPERATOR)
    client.force_login(user)
    return user


def sent(**changed):
    return {
        "name": "Shop at noon",
        "project": "shop",
        "days": "30",
        "statements": STATEMENTS,
        "data_kind": "sql",
        "sql": DATA,
        "scale": "1",
        **changed,
    }


@pytest.fixture
def load(project, member):
    brought = Brought(statements=STATEMENTS, data_kind="sql", sql=DATA)
    return loads.create(
        name="Shop at noon", brought=brought, project=project, by=member
    )


def body(response):
    assert response.status_code == 200, response
    return response.content.decode()


def test_what_was_read_is_shown_before_anything_is_kept(client, member):
    page = body(client.post("/loads/new/", sent(check="1")))
    assert "SELECT count(*) FROM orders WHERE note = ?" in page
    assert "COPY needs its rows" in page
    assert "writes; it is rolled back" in page
    assert Load.objects.count() == 0


@pytest.fixture
def dumped(client, member, monkeypatch):
    """A load that waits for its dump, whose parts are small."""
    monkeypatch.setattr(dumps, "PART_BYTES", 1000)
    body(client.post("/loads/new/", sent(store="1", data_kind="dump"), follow=True))
    return Load.objects.get()


def upload(client, load, content, *numbers):
    """What the page's script sends: all parts, or those of these numbers; the last answer."""
    count = -(-len(content) // dumps.PART_BYTES)
    answer = None
    for number in numbers or range(count):
        begin = number * dumps.PART_BYTES
        part = SimpleUploadedFile("part", content[begin : begin + dumps.PART_BYTES])
        fields = {"part": part, "number": number, "size": len(content)}
        answer = client.post(
            f"/loads/{load.slug}/dump/", fields, HTTP_ACCEPT="application/json"
        )
    return answer


def faults(answer):
    return answer.json()["faults"]


ROWS = "".join(f"{number}\trow {number} {SECRET}\n" for number in range(500))
PLAIN = (
    f"{DATA}\nALTER TABLE orders OWNER TO clerk;\n"
    f"CREATE TABLE days (id integer, day date) PARTITION BY RANGE (day);\n"
    f"COPY orders (id, note) FROM stdin;\n{ROWS}\\.\n"
).encode()


def test_a_dump_comes_in_parts_is_read_and_kept_encrypted(client, dumped):
    page = body(client.get(f"/loads/{dumped.slug}/"))
    assert "Upload the dump" in page
    assert faults(upload(client, dumped, PLAIN, 0, 1, 1)) == []
    assert results.opened(dumped).data.is_missing
    assert (
        faults(upload(client, dumped, PLAIN, *range(1, len(PLAIN) // 1000 + 1))) == []
    )
    dumped.refresh_from_db()
    data = results.opened(dumped).data
    assert (data.format, data.tables, data.objects) == ("plain", 1, 3)
    parts = list(dumped.parts.order_by("number"))
    assert [part.number for part in parts] == list(
        range(data.first_part, data.first_part + data.parts)
    )
    key = results.key_of(dumped)
    kept = b"".join(bytes(part.content) for part in parts)
    assert SECRET.encode() not in kept
    script = b"".join(content.opened_part(key, bytes(part.content)) for part in parts)
    assert ROWS.encode() in script
    page = body(client.get(f"/loads/{dumped.slug}/"))
    assert "a load does without: clerk" in page
    assert "table days needs PostgreSQL 10 or newer" in page
    assert "Upload the dump" not in page
    # Data of a load never change: clusters that are loaded are found by it.
    assert "has its data" in faults(upload(client, dumped, PLAIN, 0))[0]
    loads.remove(load=dumped)
    assert LoadPart.objects.count() == 0


def test_a_dump_is_sent_in_parts_over_the_api(client, dumped):
    address = f"/api/v1/loads/{dumped.slug}/dump/"
    count = -(-len(PLAIN) // 1000)
    for number in range(count):
        part = PLAIN[number * 1000 : (number + 1) * 1000]
        query = f"?number={number}&size={len(PLAIN)}"
        answer = client.post(f"{address}{query}", part, OCTETS)
        assert answer.status_code == 200, answer.content
        if number == 1:
            state = client.get(address).json()
            assert (state["is_missing"], state["parts"]) == (True, [0, 1])
            assert (state["size"], state["part_bytes"]) == (len(PLAIN), 1000)
    state = answer.json()
    assert (state["is_missing"], state["format"], state["tables"]) == (
        False,
        "plain",
        1,
    )
    assert state["roles"] == ["clerk"]
    (need,) = state["needs"]
    assert (need["where"], need["version"]) == ("table days", 10)
    again = client.post(address, DATA.encode(), OCTETS)
    assert (again.status_code, again.json()["code"]) == (422, "has_data")


@pytest.mark.parametrize(
    ("query", "sent", "status", "code"),
    [
        ("?number=x&size=5", (b"abcde", "application/octet-stream"), 400, "invalid"),
        (
            "?number=2&size=5",
            (b"abcde", "application/octet-stream"),
            422,
            "parts_missing",
        ),
        (
            "",
            (b"\\! touch /tmp/never", "application/octet-stream"),
            422,
            "psql_command",
        ),
        ("", ({"part": 1}, "application/json"), 415, "unsupported_media_type"),
    ],
)
def test_what_is_no_part_of_a_dump_is_refused_over_the_api(
    client, dumped, query, sent, status, code
):
    answer = client.post(f"/api/v1/loads/{dumped.slug}/dump/{query}", *sent)
    assert answer.status_code == status, answer.content
    problem = answer.json()
    assert code in {problem["code"], *(fault["code"] for fault in problem["errors"])}
    assert not LoadPart.objects.exists()


def test_a_small_dump_can_be_sent_without_the_script(client, dumped):
    dump = SimpleUploadedFile("shop.sql", DATA.encode())
    page = client.post(f"/loads/{dumped.slug}/dump/", {"part": dump}, follow=True)
    assert "The dump was read, and is kept." in body(page)
    large = SimpleUploadedFile("shop.sql", PLAIN)
    other = loads.create(
        name="Other",
        brought=Brought(statements="SELECT 1", data_kind="dump"),
        project=dumped.project,
        by=None,
    )
    page = client.post(f"/loads/{other.slug}/dump/", {"part": large})
    assert "Without JavaScript a dump may have" in body(page)


@pytest.mark.parametrize(
    ("dump", "said"),
    [
        (b"\0" * 5000, "NUL bytes"),
        (DATA.encode() + b"\n\\! touch /tmp/never\n", "is a command of psql"),
        (b"PGDMP\x01\x0e\x00" + b"\xff" * 3000, "damaged"),
        (gzip.compress(b" " * 60_000_000), "more than 10 MB"),
        (b"\x89PNG\r\n" + b"\xff" * 3000, "neither SQL, nor an archive"),
    ],
)
def test_a_hostile_dump_is_refused_and_nothing_of_it_is_kept(
    client, dumped, settings, dump, said
):
    settings.LOAD_DUMP_MB = 1
    answer = upload(client, dumped, dump)
    assert answer.status_code == 400
    assert said in faults(answer)[0]
    assert LoadPart.objects.count() == 0
    # Another one may follow.
    assert faults(upload(client, dumped, PLAIN)) == []


def test_dumps_have_limits(client, dumped, settings):
    settings.LOAD_DUMP_MB = 0.005
    assert "BENCHLAB_LOAD_DUMP_MB" in faults(upload(client, dumped, PLAIN, 0))[0]
    settings.LOAD_DUMP_MB, settings.LOAD_DUMPS_MB = 1, 0.005
    assert "BENCHLAB_LOAD_DUMPS_MB" in faults(upload(client, dumped, PLAIN, 0))[0]
    settings.LOAD_DUMPS_MB = 1
    assert "missing" in faults(upload(client, dumped, PLAIN, 3))[0]
    assert "missing" in faults(upload(client, dumped, PLAIN, 0, len(PLAIN) // 1000))[0]


def measure(client, load, server, *versions, **changed):
    installations = server.installations.filter(version__in=versions)
    fields = {
        "server": "lab",
        "installations": [str(row.pk) for row in installations],
        "rounds": "5",
        "seconds": "3",
        "caches": "warm",
        "clients": "4",
        "statement_timeout": "5",
        "disk_mb": "10",
        **changed,
    }
    return client.post(f"/loads/{load.slug}/measure/", fields)


def test_nothing_is_queued_without_its_data_or_where_they_cannot_be(
    client, dumped, server
):
    assert "upload the dump first" in body(
        measure(client, dumped, server, "13.22", "18.0")
    )
    dump = b"CREATE TABLE t (a integer, b uuid DEFAULT uuidv7());"
    assert faults(upload(client, dumped, dump)) == []
    page = body(measure(client, dumped, server, "13.22", "18.0"))
    assert "PostgreSQL 13.22 cannot have these data: table t needs uuidv7()" in page
    assert Campaign.objects.count() == 0


def test_a_load_that_is_kept_is_encrypted_and_can_be_removed(client, member, project):
    log = SimpleUploadedFile("postgresql.log", STATEMENTS.encode())
    answer = client.post(
        "/loads/new/", sent(store="1", statements="", statements_file=log), follow=True
    )
    assert "SELECT count(*) FROM items" in body(answer)
    kept = Load.objects.get()
    assert SECRET.encode() not in bytes(kept.content) + bytes(kept.key_encrypted)
    assert results.opened(kept).units[0].samples[0][0].startswith("SELECT count(*)")
    assert client.post(f"/loads/{kept.slug}/delete/").status_code == 302
    assert not Load.objects.exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"statements": ""}, "Write or choose statements."),
        ({"statements": "SELECT 'open"}, "a quote is opened and not closed"),
        ({"statements": "COPY t FROM stdin;"}, "None of its statements can be run"),
        ({"sql": "\\! touch /tmp/never"}, "is a command of psql"),
        ({"data_kind": "file", "path": "dump"}, "absolute path"),
        ({"data_kind": "file", "path": "/srv/../etc/passwd"}, "absolute path"),
        ({"statements_file": SimpleUploadedFile("a.gz", b"\x1f\x8b123")}, "compressed"),
    ],
)
def test_what_cannot_be_a_load_is_refused_with_the_reason(
    client, member, changed, said
):
    assert said in body(client.post("/loads/new/", sent(store="1", **changed)))
    assert not Load.objects.exists()


def test_the_sample_can_be_read_as_it_is(client, member):
    page = body(client.get("/loads/new/?sample=1"))
    assert "pgbench_accounts" in page
    from runs.loads import sample

    preview = loads.read(Brought(statements=sample.STATEMENTS))
    assert len(preview.load.units) == 9
    assert preview.load.left_out == ()


def test_members_alone_see_a_load_even_of_a_public_project(
    client, load, django_user_model
):
    address = f"/loads/{load.slug}/"
    assert "Shop at noon" in body(client.get(address))
    assert "Shop at noon" in body(client.get("/loads/"))
    outsider = django_user_model.objects.create_user("outsider", password="x")
    for login in (client.logout, lambda: client.force_login(outsider)):
        login()
        assert client.get(address).status_code == 404
        assert "Shop at noon" not in body(client.get("/loads/"))
        assert client.get(f"/api/v1/loads/{load.slug}/answers/x/").status_code in {
            401,
            404,
        }


@pytest.fixture
def server(db):
    scenarios.sync()
    lab = factories.server("lab", base_dir="/srv/benchlab")
    for version in ("13.22", "18.0"):
        number = factories.version_num(version)
        factories.installation(lab, version, has_psql=True, pgbench_version_num=number)
    return lab


@pytest.fixture
def measured(client, load, server):
    """A campaign of it, as the page queues it."""
    answer = measure(client, load, server, "13.22", "18.0")
    assert answer.status_code == 302, body(answer)
    return Campaign.objects.get()


def test_a_campaign_is_queued_with_a_run_for_each_version_and_round(
    client, measured, load, project
):
    assert measured.project == project
    assert measured.factors["load"] == [load.slug]
    # Those of each version: other defaults are a part of what an upgrade changes.
    run = measured.runs.first()
    assert run.plan["settings"].keys() == {"autovacuum", "log_checkpoints"}
    assert measured.runs.count() == 2 * 5
    # What is private is in no plan.
    assert SECRET not in repr(list(measured.runs.values()))
    # Three statements, each with a value, and EXPLAIN of each: six restarts of two seconds.
    page = body(client.get(f"/loads/{load.slug}/"))
    assert "Cold, a run of this load takes about 12 s for its restarts alone." in page
    assert "select" not in repr(list(measured.runs.values())).lower()


def shape(*titles):
    nodes = tuple(
        ShapeNode(depth, title, "orders", "", 10.0, 10.0, 1.0)
        for depth, title in enumerate(titles)
    )
    return (PlanShape(nodes),)


def find(load, run, times, whole=None, read_bytes=None):
    """Let a run end with these times, by number of the statement."""
    version = run.cell.version
    units = [
        FoundUnit(
            number,
            milliseconds,
            9,
            "00000" if milliseconds else "42P01",
            (),
            plan,
            read_bytes,
        )
        for number, (milliseconds, plan) in times.items()
    ]
    sealed = content.sealed(
        results.key_of(load), Found(version, tuple(units), whole).to_json()
    )
    factories.artifact(run, ArtifactData(content.ARTIFACT, sealed, content.MEDIA_TYPE))
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)


@pytest.fixture
def answered(measured, load):
    """The first statement is slower on 18, without its index; the third failed."""
    noise = random.Random(7)
    for run in measured.runs.select_related("cell"):
        is_new = run.cell.version == "18.0"
        scan = shape("Seq Scan") if is_new else shape("Index Scan")
        times = {
            1: ((20.0 if is_new else 10.0) * noise.uniform(0.98, 1.02), scan),
            2: (5.0 * noise.uniform(0.98, 1.02), shape("Seq Scan")),
            3: (None if is_new else 1.0, ()),
        }
        find(load, run, times)
    return measured


def test_the_answer_says_what_is_slower_and_what_differs_in_its_plan(
    client, load, answered
):
    page = body(client.get(f"/loads/{load.slug}/answers/{answered.slug}/"))
    assert "From 13.22 to 18.0, 1 of 3 statements the same, 0 faster, 1 slower" in page
    assert "Instead of Index Scan on orders it has Seq Scan on orders." in page
    assert "On 18.0: It names a table that is not in the data (42P01)." in page
    assert "at most 5" in page  # the false discovery rate
    assert "COPY needs its rows" in page
    turned = body(
        client.get(f"/loads/{load.slug}/answers/{answered.slug}/?base=18.0&head=13.22")
    )
    assert "1 faster, 0 slower" in turned


def test_all_doors_print_the_same_answer(client, load, answered):
    address = f"loads/{load.slug}/answers/{answered.slug}/"
    told = results.answer(load, answered)
    report = body(client.get(f"/{address}report.md"))
    found = client.get(f"/api/v1/{address}").json()
    assert told.sentence in report
    assert found["sentence"] == told.sentence
    assert [row["verdict"] for row in found["statements"]] == [
        row.word for row in told.rows
    ]
    assert found["whole"]["verdict"] == "slower"
    assert found["statements"][0]["ratio"] == pytest.approx(2, rel=0.05)
    assert told.rows[0].plan_sentences[0] in report


def test_every_door_says_that_executions_were_cold_and_what_they_read(
    client, load, server
):
    measure(client, load, server, "13.22", "18.0", caches="lukewarm")
    assert not Campaign.objects.exists()
    measure(client, load, server, "13.22", "18.0", caches="cold")
    measured = Campaign.objects.get()
    assert measured.parameters["cold"] == 1
    for run in measured.runs.select_related("cell"):
        read_bytes = 3 * 2**20 if run.cell.version == "18.0" else 2**20
        times = {1: (9.0, shape("Seq Scan")), 2: (5.0, ()), 3: (1.0, ())}
        find(load, run, times, read_bytes=read_bytes)
    told = results.answer(load, measured).caches
    assert told.sentence.startswith("Cold: before each execution")
    assert "13.22 read 1 MiB from storage, and 18.0 3 MiB" in told.sentence
    address = f"loads/{load.slug}/answers/{measured.slug}/"
    found = client.get(f"/api/v1/{address}").json()
    assert (found["caches"], found["caches_note"]) == ("cold", told.sentence)
    for name in ("", "report.md"):
        assert told.sentence in html.unescape(body(client.get(f"/{address}{name}")))
    page = body(client.get(f"/campaigns/{measured.slug}/"))
    assert re.search(
        r"Caches are emptied before each execution</dt>\s*<dd>\s*yes", page
    )


def test_a_warm_answer_says_so(load, answered):
    told = results.answer(load, answered).caches
    assert told.sentence == "Warm: in each run everything was executed once before."


def test_the_report_of_the_campaign_has_the_answer_for_members_alone(
    client, load, answered
):
    address = f"/campaigns/{answered.slug}/report/"
    api = f"/api/v1{address}"
    for language in ("en", "ja"):
        with override(language):
            told = results.answer(load, answered)
            texts = [told.sentence, told.rows[0].plan_sentences[0]]
        for door in (address, api):
            page = client.get(f"{door}?format=html&lang={language}")
            report = html.unescape(body(page))
            assert all(text in report for text in texts), door
            assert "SELECT count(*) FROM orders" in report
            packed = client.get(f"{door}?format=md&lang={language}").content
            with zipfile.ZipFile(io.BytesIO(packed)) as files:
                (name,) = [name for name in files.namelist() if name.endswith(".md")]
                markdown = files.read(name).decode()
            assert texts[1] in markdown, door
    # The campaign is public, the load is not, and nothing is kept of what a member has read.
    client.logout()
    for door in (address, api):
        report = body(client.get(f"{door}?format=html&lang=en"))
        assert "orders" not in report


def invalidate(runs):
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(
        state=Run.State.WITHDRAWN,
        code=Run.Validity.INVALID,
        validity=Run.Validity.INVALID,
    )


def test_a_round_with_an_invalid_run_is_left_out_as_a_round(client, load, answered):
    assert results.answer(load, answered).caution == ""
    runs = list(answered.runs.filter(repeat__lte=2, cell__version="18.0"))
    invalidate(runs)
    told = results.answer(load, answered)
    assert (told.rounds, told.all_rounds, told.disturbed) == (3, 5, 2)
    assert told.caution.startswith("2 of 5 rounds are left out")
    assert told.caution in body(
        client.get(f"/loads/{load.slug}/answers/{answered.slug}/")
    )
    # Where too few would be left all count, and the answer says so.
    invalidate(answered.runs.filter(repeat=3, cell__version="13.22"))
    told = results.answer(load, answered)
    assert told.rounds == 5
    assert told.caution.startswith("In 3 of 5 rounds a run is invalid")
    # What somebody has withdrawn is left out in any case.
    Run.objects.filter(pk=runs[0].pk).update(code="withdrawn")
    assert results.answer(load, answered).all_rounds == 4


@pytest.fixture
def drawn(measured, load):
    """By four clients 18 does a tenth more; the second statement failed in its first round."""
    for run in measured.runs.select_related("cell"):
        is_new = run.cell.version == "18.0"
        is_first = run.repeat == 1
        has_failed = is_new or not is_first
        whole = FoundWhole(
            clients=4,
            calls_per_second=1100.0 + run.repeat if is_new else 1000.0,
            drawn=(1, 3) if has_failed else (1, 2, 3),
            failed=(2,) if has_failed else (),
        )
        plan = shape("Seq Scan")
        times = {1: (10.0, plan), 2: (None if is_new else 5.0, plan), 3: (1.0, plan)}
        find(load, run, times, whole)
    return measured


def test_the_load_as_a_whole_is_of_several_clients_and_one_sentence(
    client, load, drawn
):
    told = results.answer(load, drawn)
    assert told.whole.word == "faster"
    assert told.whole.sentence.startswith(
        "the load as a whole, 4 clients: 10.3 % faster (+"
    )
    assert told.whole.sentence in told.sentence
    # The first round has other statements on both sides.
    assert told.whole.rounds == 4
    address = f"loads/{load.slug}/answers/{drawn.slug}/"
    page = body(client.get(f"/{address}"))
    report = body(client.get(f"/{address}report.md"))
    found = client.get(f"/api/v1/{address}").json()
    assert found["whole"]["sentence"] == told.whole.sentence
    assert found["whole"]["clients"] == 4
    assert found["whole"]["ratio"] == pytest.approx(1 / 1.1, rel=0.01)
    for text in (told.sentence, *told.whole_notes):
        assert text in page
        assert text in report
    assert "1 statement is left out of the load as a whole" in page
    turned = results.answer(load, drawn, base="18.0", head="13.22")
    assert turned.whole.word == "slower"
    assert "slower (" in turned.whole.sentence


def test_a_run_leaves_out_what_failed_anywhere_in_the_round_before(load, drawn):
    first, second, third = (
        load_contents.find_content(RunPlan.from_json(run.plan))
        for run in drawn.runs.filter(repeat__lte=3, cell__version="13.22").order_by(
            "repeat"
        )
    )
    assert (first.round, first.failed) == (1, frozenset())
    assert second.failed == third.failed == {2}


def test_without_several_clients_the_sum_is_said_and_why(client, load, measured):
    for run in measured.runs.select_related("cell"):
        whole = FoundWhole(
            4, None, (1,), unsafe=(2,), problem="ended", message="deadlock detected"
        )
        find(load, run, {1: (10.0, ()), 2: (5.0, ())}, whole)
    told = results.answer(load, measured)
    assert told.whole.sentence.startswith(
        "the load as a whole, one statement at a time"
    )
    page = body(client.get(f"/loads/{load.slug}/answers/{measured.slug}/"))
    assert "pgbench ended early (deadlock detected)" in page
    assert "a backslash, or :scale" in page


@pytest.fixture
def memoized(measured, load):
    """The first statement is slower on 18, which remembers rows in it."""
    noise = random.Random(5)
    for run in measured.runs.select_related("cell"):
        is_new = run.cell.version == "18.0"
        plan = shape("Memoize", "Index Scan") if is_new else shape("Index Scan")
        time = (30.0 if is_new else 10.0) * noise.uniform(0.99, 1.01)
        find(load, run, {1: (time, plan), 2: (5.0, shape("Seq Scan"))})
    Campaign.objects.filter(pk=measured.pk).update(state=Campaign.State.FINISHED)
    return measured


def try_it(client, load, measured, statement=1):
    address = f"/loads/{load.slug}/answers/{measured.slug}/try/"
    return client.post(
        address, {"statement": statement, "base": "13.22", "head": "18.0"}, follow=True
    )


def end_trial(load, times):
    """Let both runs of the trial end, with the mean times of their arms."""
    campaign = Campaign.objects.order_by("-pk").first()
    noise = random.Random(11)
    for run in campaign.runs.select_related("cell"):
        arms = {
            name: {
                number: times[name] * noise.uniform(0.98, 1.02)
                for number in range(1, 13)
            }
            for name in trial.arms(run.cell.levels[trial.LEVEL])
        }
        sealed = content.sealed(results.key_of(load), TrialTimes(arms).to_json())
        factories.artifact(
            run, ArtifactData(trial.ARTIFACT, sealed, content.MEDIA_TYPE)
        )
        Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.FINISHED)
    return campaign


def test_the_setting_that_puts_a_slower_statement_back_is_tried_and_named(
    client, load, memoized
):
    address = f"/loads/{load.slug}/answers/{memoized.slug}/"
    page = body(client.get(address))
    assert "enable_memoize (new, on)" in page
    assert "Try these settings" in page
    assert "It is being tried with enable_memoize = off." in body(
        try_it(client, load, memoized)
    )
    campaign = Campaign.objects.order_by("-pk").first()
    plans = [RunPlan.from_json(run.plan) for run in campaign.runs.order_by("position")]
    templates = {
        run.plan["bindir"]: run.plan["template_key"] for run in memoized.runs.all()
    }
    # Both copy the clusters that are there, and take turns.
    assert {plan.template_key for plan in plans} == set(templates.values()) - {""}
    assert [plan.levels["arm"] for plan in plans] == ["A", "enable_memoize = off"]
    assert {(plan.slice_s, plan.parameters["statement"]) for plan in plans} == {(1, 1)}
    end_trial(load, {"A": 10, "B": 30, "B again": 30, "enable_memoize": 10})
    told = results.answer(load, memoized).rows[0]
    assert any(
        sentence.startswith("Putting enable_memoize back explains ")
        for sentence in told.cause_sentences
    )
    found = client.get(f"/api/v1{address}").json()["statements"][0]
    assert (found["cause"], found["trial"]) == (told.cause_sentences, campaign.slug)
    page, report = (body(client.get(f"{address}{name}")) for name in ("", "report.md"))
    for sentence in told.cause_sentences:
        assert sentence in page
        assert sentence in report
    # A trial is no measurement of the load.
    assert campaign.title not in body(client.get(f"/loads/{load.slug}/"))
    page = body(client.get(f"/campaigns/{campaign.slug}/"))
    # Its two cells differ in both factors: no table compares them.
    assert 'id="ratios"' not in page
    assert "of campaign" not in page
    # Both lead members, and nobody else, to the answer.
    pages = [f"/campaigns/{slug}/" for slug in (campaign.slug, memoized.slug)]
    assert all(f'href="{address}"' in body(client.get(page)) for page in pages)
    client.logout()
    assert not any(load.slug + "/answers" in body(client.get(page)) for page in pages)


def test_a_trial_whose_clusters_have_no_memory_at_once_is_refused(
    client, load, memoized
):
    for run in memoized.runs.exclude(plan=None):
        plan = {**run.plan, "settings": {"shared_buffers": "4GB"}}
        memoized.runs.filter(pk=run.pk).update(plan=plan)
    hardware = factories.hardware("12 GiB")
    hardware.memory_bytes = 12 * 2**30
    hardware.save()
    Server.objects.update(hardware=hardware)
    text = body(try_it(client, load, memoized))
    assert "2 clusters at once have 8 GiB of shared_buffers" in text
    assert "Measure the load with a configuration that has less." in text
    assert not Campaign.objects.filter(slice_seconds=1).exists()


def test_a_trial_has_its_title_in_the_language_of_its_reader(client, load, memoized):
    client.cookies["django_language"] = "ja"
    try_it(client, load, memoized)
    campaign = Campaign.objects.order_by("-pk").first()
    address = f"/campaigns/{campaign.slug}/"
    assert "Shop at noon、文 1" in body(client.get(address))
    client.cookies["django_language"] = "en"
    assert "Shop at noon, statement 1: settings put back" in body(client.get(address))


def test_a_trial_of_cold_executions_is_cold(client, load, memoized):
    Campaign.objects.update(parameters={**memoized.parameters, "cold": 1})
    try_it(client, load, memoized)
    parameters = Campaign.objects.order_by("-pk").first().parameters
    # Four arms, each with its restart, in a slice: one look is enough.
    assert (parameters["cold"], parameters["duration"]) == (1, 6)


def test_a_trial_is_made_and_read_over_the_api(client, load, memoized):
    address = f"/api/v1/loads/{load.slug}/answers/{memoized.slug}/trials/"
    assert client.get(address).json() == []
    sent = {"statement": 1, "base": "13.22", "head": "18.0"}
    answer = client.post(address, sent, "application/json")
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert made["put_back"] == {"enable_memoize": "off"}
    assert (made["has_ended"], made["statement"]) == (False, 1)
    again = client.post(address, sent, "application/json")
    assert (again.status_code, again.json()["code"]) == (409, "already_measured")
    campaign = end_trial(load, {"A": 10, "B": 30, "B again": 30, "enable_memoize": 10})
    (found,) = client.get(address).json()
    assert (found["slug"], found["has_ended"]) == (campaign.slug, True)
    told = results.answer(load, memoized).rows[0].cause_sentences
    assert found["sentences"] == told
    unknown = client.post(address, {"statement": 99}, "application/json")
    assert unknown.json()["code"] == "nothing_to_try"


def test_who_may_use_trials_and_dumps_over_the_api(
    client, load, memoized, project, make_token
):
    waits = Brought(statements="SELECT 1", data_kind="dump")
    dumped = loads.create(name="Other", brought=waits, project=project, by=None)
    trials = f"/api/v1/loads/{load.slug}/answers/{memoized.slug}/trials/"
    dump = f"/api/v1/loads/{dumped.slug}/dump/"

    def asked(*scopes, of=project):
        token = make_token(*scopes, of=of) if scopes else ""
        sent = {"headers": {"Authorization": f"Bearer {token}"} if token else {}}
        return [
            client.get(trials, **sent).status_code,
            client.post(
                trials, {"statement": 1}, "application/json", **sent
            ).status_code,
            client.get(dump, **sent).status_code,
            client.post(dump, DATA.encode(), OCTETS, **sent).status_code,
        ]

    client.logout()
    assert asked() == [404, 401, 404, 401]
    other = Project.objects.create(slug="other", name="Other")
    assert asked("read", "queue", of=other) == [404, 404, 404, 404]
    assert asked("read") == [200, 403, 200, 403]
    assert asked("read", "queue") == [200, 201, 200, 200]


def test_none_of_those_tried_is_said_where_none_is_proven(client, load, memoized):
    try_it(client, load, memoized)
    end_trial(load, {"A": 10, "B": 30, "B again": 30, "enable_memoize": 30})
    told = results.answer(load, memoized).rows[0].cause_sentences
    assert "None of those tried is proven to put it back." in told
    assert "Alone, enable_memoize has no effect above 3 %." in told
    assert "Try them again" in body(
        client.get(f"/loads/{load.slug}/answers/{memoized.slug}/")
    )


def test_what_cannot_be_tried_is_refused_with_the_reason(client, load, answered):
    page = body(client.get(f"/loads/{load.slug}/answers/{answered.slug}/"))
    assert "Its plan points to no setting whose default differs." in page
    assert "Try these settings" not in page
    assert "points to no setting" in body(try_it(client, load, answered))
    assert "no such statement" in body(try_it(client, load, answered, statement=99))
    assert try_it(client, load, answered, statement="x").status_code == 404
    assert Campaign.objects.count() == 1


def test_who_may_not_queue_runs_sees_no_button_and_is_refused(
    client, load, memoized, project
):
    viewer = User.objects.create_user("viewer", password="x")
    Membership.objects.create(user=viewer, project=project, role=Membership.Role.VIEWER)
    client.force_login(viewer)
    page = body(client.get(f"/loads/{load.slug}/answers/{memoized.slug}/"))
    assert "enable_memoize (new, on)" in page
    assert "Try these settings" not in page
    assert try_it(client, load, memoized).status_code == 403


def test_without_its_key_nothing_of_the_answer_can_be_read(client, load, answered):
    other = loads.create(
        name="Other",
        brought=Brought(statements="SELECT 1"),
        project=load.project,
        by=None,
    )
    assert results.answer(other, answered) is None
    loads.remove(load=load)
    assert client.get(f"/loads/{load.slug}/answers/{answered.slug}/").status_code == 404


def test_a_load_whose_time_is_over_is_seen_by_nobody_and_removed(client, load):
    Load.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert client.get(f"/loads/{load.slug}/").status_code == 404
    assert loads.remove_expired() == 1
    assert not Load.objects.exists()


def test_a_load_goes_with_its_project(load, project):
    project.delete()
    assert not Load.objects.exists()


def test_the_usual_project_of_who_has_none_is_the_default_one(client, db):
    admin = User.objects.create_superuser("admin", password="x")
    client.force_login(admin)
    client.post("/loads/new/", sent(store="1", project=""))
    assert Load.objects.get().project == projects.default()
