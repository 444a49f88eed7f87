"""Pages of campaigns are read from what is kept, and none is stale for a moment."""

import os
import re
import threading
from collections import Counter
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone, translation
from django.utils.translation import gettext

from runs import celery_messages, tasks
from runs.access.services import projects
from runs.archive import services
from runs.campaigns.services import kept_verdicts
from runs.campaigns.views import page as campaign_page
from runs.cells.services import summaries
from runs.models import (
    Annotation,
    CacheVersion,
    Campaign,
    CellSummary,
    Change,
    Configuration,
    Installation,
    Membership,
    Metric,
    Project,
    PublishedTable,
    Revision,
    Run,
    RunCount,
    Scenario,
    Server,
    Source,
    Topology,
    TopologyNode,
)
from runs.published import reading
from runs.queue.services import withdrawals
from runs.shared import caching
from tests import factories
from tests.each import some
from tests.history_points import commit, repeats, store

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = re.compile(r'(?<=name="csrfmiddlewaretoken" value=")[^"]+')
STAMP = re.compile(r'"X-Stamp": "(\w+)"')
HISTORY = "/campaigns/nightly/history/"
LAB, NIGHTLY, AGAIN = "/campaigns/lab/", "/campaigns/nightly/", "/campaigns/again/"


@pytest.fixture
def operator(django_user_model):
    user = django_user_model.objects.create_user("ichiro", password="secret")
    projects.default().memberships.create(user=user, role="maintainer")
    made = Client(headers={"Accept-Language": "ja"})
    made.force_login(user)
    return made


@pytest.fixture
def lab():
    """At work on a server: two versions, three numbers of clients, a run of each cell is ahead."""
    server = factories.server("db1", name="db1")
    built = factories.installation(server, "16.14", configure_options="CFLAGS=-O2")
    configuration = factories.configuration("small", settings={"work_mem": "8MB"})
    topology = Topology.objects.create(
        slug="one", kind=Topology.Kind.SINGLE, name="one"
    )
    topology.nodes.create(server=server, role=TopologyNode.Role.DATABASE)
    made = factories.campaign(
        "lab",
        repeats=4,
        on=server,
        state="running",
        configuration=configuration,
        topology=topology,
    )
    made.cells.update(installation=built)
    made.runs.update(hardware=server.hardware, environment=server.environment)
    ahead = made.runs.select_related("cell").filter(repeat__lte=3).order_by("pk")
    values = {
        run: 1000.0 * run.cell.levels["clients"] * (1 + run.pk % 7 / 900)
        for run in ahead
    }
    factories.finish_many({run: {"tps": value} for run, value in values.items()})
    note = {"campaign": made, "author": User.objects.create_user("saburo")}
    Annotation.objects.create(
        text="A note on a point.", cell=made.cells.first(), **note
    )
    return made


@pytest.fixture
def nightly():
    """Two commits of uploads, the first without its time."""
    store(*(repeats(commit(number), tps=[1000, 1010, 990]) for number in range(2)))
    return Campaign.objects.get(slug="nightly")


@pytest.fixture
def again(lab):
    """A campaign that reproduces a published table."""
    services.load(files=[path for path in reading.files() if path.stem == "wg1-2013"])
    made = factories.campaign(
        "again", reproduces="wg1-2013-2-2", on=lab.runs.first().server
    )
    return factories.finish_all(made)


def of(model, **which):
    return model.objects.filter(**which)


def a_run(**which):
    """A change of one run of the laboratory."""
    return lambda **fields: (
        lambda: of(
            Run, pk=of(Run, campaign__slug="lab", **which).earliest("pk").pk
        ).update(**fields)
    )


queued, finished = a_run(state="queued"), a_run(state="finished")


def a_figure_is_corrected():
    run = Run.objects.filter(campaign__slug="lab", state="finished").earliest("pk")
    with transaction.atomic():
        run.measurements.update(value=777.5)
        run.save()
        factories.summary(run.cell, "tps")


def a_run_finishes():
    run = Run.objects.filter(campaign__slug="lab", state="queued").earliest("pk")
    with transaction.atomic():
        factories.finish(run, tps=1234.0)


def another_campaign_ends():
    server = Server.objects.get(slug="db1")
    other = factories.campaign("other", on=server)
    other.runs.update(hardware=server.hardware)
    factories.finish_all(other, noise=0.05)


def a_note(**fields):
    return lambda: Annotation.objects.create(
        campaign=Campaign.objects.get(slug="lab"),
        kind="conclusion",
        text="One more.",
        **fields,
    )


def a_change_is_found():
    found = set(Change.objects.values_list("cell", flat=True))
    cell = Campaign.objects.get(slug="nightly").cells.exclude(pk__in=found).latest("pk")
    Change.objects.create(
        cell=cell,
        campaign=cell.campaign,
        run=cell.runs.earliest("pk"),
        metric=Metric.objects.get(name="tps"),
        kind="step",
        ratio=0.9,
        before=1000.0,
        after=900.0,
        rules=1,
    )


def a_note_on_uploads():
    nightly = Campaign.objects.get(slug="nightly")
    Annotation.objects.create(campaign=nightly, kind="conclusion", text="Of uploads.")


def a_median_is_renewed():
    cells = list(
        Campaign.objects.get(slug="nightly").cells.values_list("pk", flat=True)
    )
    CellSummary.objects.filter(cell__in=cells).update(n=1000, median=1.0)
    summaries.renew_medians(cell_ids=cells)


# What is changed, the pages that show it, and how.
CHANGES = {
    "a run is claimed": (LAB, queued(state="claimed")),
    "a run fails": (
        LAB,
        a_run(state="claimed")(state="failed", message="No room.\n\nNone."),
    ),
    "a failed run says more": (LAB, a_run(state="failed")(remedy="Make room.")),
    "a run is queued again": (LAB, a_run(state="failed")(state="queued")),
    "a run finishes": (LAB, a_run_finishes),
    "a run is in doubt": (LAB, finished(validity="doubtful")),
    "a run is withdrawn": (LAB, finished(state="withdrawn")),
    "a run had other hardware": (
        LAB,
        lambda: Run.objects.filter(campaign__slug="lab", position=1).update(
            hardware=factories.hardware("four-core")
        ),
    ),
    "a run is deleted": (
        LAB,
        lambda: Run.objects.filter(campaign__slug="lab").latest("pk").delete(),
    ),
    "a figure is corrected": (LAB, a_figure_is_corrected),
    "another campaign ends": (LAB, another_campaign_ends),
    "a cell is of another version": (
        LAB,
        lambda: (
            of(Campaign, slug="lab")
            .get()
            .cells.filter(version="18.4")
            .update(version="18.5")
        ),
    ),
    "the campaign has another seed": (
        LAB,
        lambda: of(Campaign, slug="lab").update(seed=123456),
    ),
    "the campaign is paused": (
        LAB,
        lambda: of(Campaign, slug="lab").update(paused_at=timezone.now()),
    ),
    "the campaign keeps other things": (
        LAB,
        lambda: of(Campaign, slug="lab").update(parameters={"duration": 61}),
    ),
    "the scenario's title": (LAB, lambda: of(Scenario).update(title="Read only")),
    "the metric's title": (
        LAB,
        lambda: of(Metric, name="tps").update(title="Throughput"),
    ),
    "the server's name": (LAB, lambda: of(Server).update(name="Rack <2>")),
    "the configuration's name": (LAB, lambda: of(Configuration).update(name="Little")),
    "how the server was built": (
        LAB,
        lambda: of(Installation).update(
            configure_options="--enable-cassert CFLAGS=-O0"
        ),
    ),
    "the topology": (LAB, lambda: of(Topology).update(kind=Topology.Kind.CLIENT)),
    "a note is added": (LAB, a_note()),
    "a note of a point is changed": (
        LAB,
        lambda: of(Annotation, cell__isnull=False).update(text="Another <note>."),
    ),
    "its author's name": (
        LAB,
        lambda: of(User, username="saburo").update(username="shiro"),
    ),
    "a note is deleted": (LAB, lambda: of(Annotation, cell__isnull=False).delete()),
    "the campaign ends": (
        LAB,
        lambda: of(Campaign, slug="lab").update(state="cancelled"),
    ),
    "an upload": (
        NIGHTLY,
        lambda: store(repeats(commit(1), tps=[1100], campaign="nightly")),
    ),
    "an upload of a new commit": (
        NIGHTLY,
        lambda: store(repeats(commit(2), tps=[900, 905])),
    ),
    "a commit is older": (
        NIGHTLY,
        lambda: of(Revision, sha=commit(2).sha).update(
            committed_at=commit(0).committed_at
        ),
    ),
    "an upload of a history": (
        HISTORY,
        lambda: store(repeats(commit(1), tps=[1150], campaign="nightly")),
    ),
    "a new commit of a history": (
        HISTORY,
        lambda: store(repeats(commit(3), tps=[940, 945])),
    ),
    "a commit of a history is of another branch": (
        HISTORY,
        lambda: of(Revision, sha=commit(3).sha).update(ref="release"),
    ),
    "a commit of a history is on a further branch": (
        HISTORY,
        lambda: store(
            repeats(replace(commit(3), ref="stable"), tps=[941], campaign="nightly")
        ),
    ),
    "a change is found": (HISTORY, a_change_is_found),
    "a change of an uploaded campaign is found": (NIGHTLY, a_change_is_found),
    "a note on an uploaded campaign": (NIGHTLY, a_note_on_uploads),
    "a run of an upload is withdrawn": (
        NIGHTLY,
        lambda: withdrawals.withdraw(
            run=Run.objects.filter(campaign__slug="nightly").earliest("pk"),
            reason="The machine was slow.",
        ),
    ),
    "a change is decided": (
        HISTORY,
        lambda: of(Change, campaign__slug="nightly").update(
            decision="confirmed",
            note="It was <this>.",
            decided_at=timezone.now(),
            decided_by=User.objects.create_user("hanako"),
        ),
    ),
    "who decided has another name": (
        HISTORY,
        lambda: of(User, username="hanako").update(username="keiko"),
    ),
    "a run of a history is withdrawn": (
        HISTORY,
        lambda: withdrawals.withdraw(
            run=Run.objects.filter(campaign__slug="nightly").latest("pk"),
            reason="The machine was slow.",
        ),
    ),
    "a median is made of all repeats": (HISTORY, a_median_is_renewed),
    "the metric's title in a history": (
        HISTORY,
        lambda: of(Metric, name="tps").update(unit="transactions"),
    ),
    "the branch of a history": (
        HISTORY,
        lambda: of(Campaign, slug="nightly").update(tracked_ref="release"),
    ),
    "a printed table": (
        AGAIN,
        lambda: of(PublishedTable, number="2.2").update(
            reproduce={"shown_by": "Nothing."}
        ),
    ),
    "a publication's title": (
        AGAIN,
        lambda: of(Source).update(title="Another", title_ja="別"),
    ),
}


@pytest.fixture(autouse=True)
def nobody_is_silent(monkeypatch):
    """For how long something has been silent is said each time."""
    monkeypatch.setattr(campaign_page, "silences", list)


# Of the changes that a page shows the first half is met by anybody and the second by operators, as
# a page that the same reader has seen is kept; script/test --all meets all of them with each.
READERS = (("anybody",), ("operator", "a poll"))


def test_no_page_is_stale_after_any_change(
    client, operator, lab, nightly, again, monkeypatch
):
    # A stamp follows the clock, and this test compares pages of two moments.
    monkeypatch.setattr(campaign_page, "ESTIMATE_SECONDS", 1e9)
    readers = {"anybody": (client, {}), "operator": (operator, {})}
    readers |= {"a poll": (operator, {"HX-Request": "true"})}

    def answers(address, names):
        found = {}
        for name in names:
            asked, headers = readers[name]
            answer = asked.get(address, headers=headers)
            assert answer.status_code == 200
            found[name] = TOKEN.sub("", answer.content.decode()).splitlines()
        return found

    compared = some(CHANGES, 2)
    met, most = Counter(), Counter(CHANGES[what][0] for what in compared)
    for what, (address, change) in CHANGES.items():
        if what not in compared:
            change()
            continue
        turn = READERS[2 * met[address] >= most[address]]
        names = readers if "BENCHLAB_TEST_ALL" in os.environ else turn
        met[address] += 1
        before = answers(address, names)
        assert answers(address, names) == before, what
        change()
        kept = answers(address, names)
        cache.clear()
        of_nothing = answers(address, names)
        for reader, page in kept.items():
            assert page == of_nothing[reader], (what, reader)
            assert reader == "a poll" or page != before[reader], (
                f"{what}: nothing to see"
            )


def test_an_upload_raises_no_version_that_another_would_wait_for(nightly):
    store(repeats(commit(1), tps=[1100]))
    before = list(CacheVersion.objects.order_by("subject").values_list())
    version = caching.find_upload_version(nightly.pk)
    store(repeats(commit(1), tps=[1100]), repeats(commit(5), tps=[1100]))
    assert list(CacheVersion.objects.order_by("subject").values_list()) == before
    assert caching.find_upload_version(nightly.pk) != version


def test_a_history_that_is_kept_takes_few_statements(
    client, nightly, django_assert_num_queries
):
    client.get(HISTORY)
    # The campaign, and its version.
    with django_assert_num_queries(2):
        client.get(HISTORY)


def test_readers_get_what_is_theirs_from_what_is_kept(client, operator, lab):
    other = Client()
    other.force_login(User.objects.create_user("goro"))
    readers = {"anybody": client, "operator": operator, "no member": other}

    def ask(reader, **headers):
        return TOKEN.sub("", readers[reader].get(LAB, headers=headers).content.decode())

    def seen():
        found = {(reader, ""): ask(reader) for reader in readers}
        return found | {
            (reader, language): ask(reader, **{"Accept-Language": language})
            for reader in readers
            for language in ("en", "ja")
        }

    first = seen()
    assert seen() == first
    assert '/campaigns/lab/pause/"' in first["operator", ""]
    assert '/campaigns/lab/annotations/"' in first["operator", ""]
    assert "/pause/" not in first["anybody", ""] + first["no member", ""]
    assert "goro" in first["no member", ""]
    assert "ichiro" not in first["no member", ""] + first["anybody", ""]
    with translation.override("ja"):
        japanese = gettext("Order of execution")
    for (reader, language), page in first.items():
        own = "ja" if reader == "operator" else "en"
        assert (japanese in page) == ((language or own) == "ja"), (reader, language)
    tokens = [
        TOKEN.search(asked.get(LAB).content.decode())[0]
        for asked in readers.values()
        for _ in "12"
    ]
    assert len(set(tokens)) == len(tokens)

    lab.project = Project.objects.create(slug="secret", name="s", is_public=False)
    lab.save()
    assert {each.get(LAB).status_code for each in readers.values()} == {404}


@pytest.mark.parametrize("clients", [[1, 4], [*range(1, 41)]])
def test_a_page_that_is_kept_takes_few_statements(
    client, operator, nightly, django_assert_num_queries, clients
):
    factors = {"version": ["16.14", "18.4"], "clients": clients}
    factories.finish_all(
        factories.campaign("lab", factors=factors, on=factories.server())
    )
    # The campaign, its stamp, its runs by state, and notes; regressions; who reads it, with rights.
    for reader, address, count in (
        (client, LAB, 4),
        (operator, LAB, 8),
        (client, f"{LAB}?order=2", 4),
    ):
        reader.get(address)
        with django_assert_num_queries(count):
            reader.get(address)


def test_verdicts_of_a_wide_campaign_are_made_by_control_and_never_shown_as_those_of_now(
    client, lab, monkeypatch
):
    being_made, older = (
        "The verdicts are being calculated.",
        "newer ones are being calculated.",
    )
    languages = {"en": {}, "ja": {"Accept-Language": "ja"}}

    def ask(headers):
        return TOKEN.sub("", client.get(LAB, headers=headers).content.decode())

    def summary():
        return client.get("/api/v1" + LAB).json()["summary"]

    of_control = {language: ask(headers) for language, headers in languages.items()}
    sentences = summary()
    cache.clear()
    monkeypatch.setattr(kept_verdicts, "MOST_RUNS", 10)
    monkeypatch.setattr(caching, "SELDOM", 0)
    page = ask({})
    assert being_made in page
    assert 'id="conclusion"' not in page
    assert 'hx-trigger="every 2s"' in page
    assert summary() is None

    sent = []
    monkeypatch.setattr(celery_messages, "_send", lambda *told: sent.append(told))
    # A process of its own would use the database that is no test's.
    monkeypatch.setattr(tasks, "run_in_child", lambda judge, *asked: judge(*asked))
    of(RunCount, campaign=lab.pk).update(is_sum=False)
    cache.clear()
    kept_verdicts.look()
    assert sent == [(celery_messages.JUDGE_CAMPAIGN, lab.pk, "")]
    tasks.judge_campaign(*sent.pop()[1:])
    kept_verdicts.look()
    assert not sent
    for language, headers in languages.items():
        assert STAMP.sub("", ask(headers)) == STAMP.sub("", of_control[language]), (
            language
        )
    assert summary() == sentences

    finished(validity="doubtful")()
    page = ask({})
    assert older in page
    assert 'id="conclusion"' in page
    assert summary() is None
    tasks.judge_campaign(lab.pk, "")
    page = ask({})
    assert older not in page
    monkeypatch.setattr(kept_verdicts, "MOST_RUNS", 10_000)
    cache.clear()
    assert STAMP.sub("", page) == STAMP.sub("", ask({}))


def test_control_makes_only_tables_that_there_are(client, lab, monkeypatch):
    sent = []
    monkeypatch.setattr(celery_messages, "_send", lambda *told: sent.append(told[2]))
    monkeypatch.setattr(kept_verdicts, "MOST_RUNS", 10)
    for asked in (
        "",
        "by=steps",
        "by=x",
        "metric=x",
        "ratios=1",
        "ratios=x",
        "cells=2",
        "by=version&ratios=3",
    ):
        client.get(f"{LAB}?{asked}")
    assert sent == ["", "?by=steps", "?by=version&ratios=3"]


def test_a_page_of_a_transaction_is_made_of_what_it_sees(client, lab):
    client.get(LAB)
    with transaction.atomic():
        finished(validity="doubtful")()
        page = client.get(LAB).content.decode()
        transaction.set_rollback(True)
    assert "finished, doubtful" in page
    assert "finished, doubtful" not in client.get(LAB).content.decode()


# What changes on a page at work without a run that ends, begins or is queued.
QUIET_CHANGES = {
    "the machine has another problem": lambda: of(Server).update(
        problem="It shows another key."
    ),
    "its name": lambda: of(Server).update(name="Rack <3>"),
    "a point of its chart is noted": lambda: of(Annotation).update(
        text="Look at this point."
    ),
    "a figure is corrected": a_figure_is_corrected,
    "the metric's title": lambda: of(Metric, name="tps").update(title="Rate"),
    "a failed run says more": a_run(state="failed")(message="It was the disk."),
    "the reader may do less": lambda: of(Membership, user__username="ichiro").delete(),
}


def test_a_poll_is_answered_where_anything_on_the_page_has_changed(operator, lab):
    a_run(state="queued")(state="failed", message="No room.")()
    of(Server).update(state="unreachable", problem="It does not answer.")
    polled = operator.get(LAB).content.decode()
    for what, change in QUIET_CHANGES.items():
        stamp = STAMP.search(polled)[1]
        headers = {"HX-Request": "true", "X-Stamp": stamp}
        assert operator.get(LAB, headers=headers).status_code == 204, what
        change()
        answer = operator.get(LAB, headers=headers)
        assert answer.status_code == 200, what
        before, polled = polled, answer.content.decode()
        assert TOKEN.sub("", polled) not in TOKEN.sub("", before), what


def test_a_poll_is_answered_while_the_time_that_is_left_becomes_less(
    client, lab, monkeypatch
):
    a_run(state="queued")(state="preparing", started_at=timezone.now())()
    monkeypatch.setattr("time.time", lambda: 3000.0)
    stamp = STAMP.search(client.get(LAB).content.decode())[1]
    headers = {"HX-Request": "true", "X-Stamp": stamp}
    assert client.get(LAB, headers=headers).status_code == 204
    monkeypatch.setattr("time.time", lambda: 3000.0 + 60)
    assert client.get(LAB, headers=headers).status_code == 200


def test_a_poll_after_the_login_has_ended_is_answered(client, operator, lab):
    stamp = STAMP.search(operator.get(LAB).content.decode())[1]
    headers = {"HX-Request": "true", "X-Stamp": stamp, "Accept-Language": "ja"}
    assert operator.get(LAB, headers=headers).status_code == 204
    operator.logout()
    answer = operator.get(LAB, headers=headers)
    assert answer.status_code == 200
    assert "/pause/" not in answer.content.decode()


def test_a_transaction_that_began_before_what_it_changes_makes_a_page_anew(client, lab):
    one, other = of(Run, campaign=lab, state="finished").order_by("pk")[:2]
    begun, may_go_on = threading.Event(), threading.Event()

    def in_a_transaction():
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SELECT pg_current_xact_id()")
                begun.set()
                assert may_go_on.wait(20)
                of(Run, pk__in=(one.pk, other.pk)).update(validity="doubtful")
        finally:
            connections.close_all()

    # Versions x-1 and x+1, of which the transaction x makes x and x: the sum stays.
    of(Run, pk=other.pk).update(message="")
    slow = threading.Thread(target=in_a_transaction)
    slow.start()
    assert begun.wait(20)
    of(Run, pk=one.pk).update(message="")
    before = client.get(LAB).content.decode()
    may_go_on.set()
    slow.join()
    page = client.get(LAB).content.decode()
    assert "finished, doubtful" in page
    assert "finished, doubtful" not in before


def test_a_poll_is_answered_by_nothing_until_something_is_new(
    client, ready_server, django_assert_max_num_queries
):
    campaign = factories.campaign("live", on=ready_server, state="running")
    first, second, *_others = campaign.runs.all()
    factories.finish(first, tps=1000)
    htmx = {"HX-Request": "true"}

    def stamp(page):
        return STAMP.search(page.content.decode()).group(1)

    seen = stamp(client.get("/campaigns/live/"))
    with django_assert_max_num_queries(6):
        again = client.get("/campaigns/live/", headers=htmx | {"X-Stamp": seen})
    factories.finish(second, tps=1000)
    changed = client.get("/campaigns/live/", headers=htmx | {"X-Stamp": seen})

    assert (again.status_code, again.content) == (204, b"")
    assert changed.status_code == 200
    assert b"2 of 18 runs" in changed.content
    assert stamp(changed) != seen
