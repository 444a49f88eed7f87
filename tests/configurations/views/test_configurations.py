"""Configurations: list, page, editor, its check, and postgresql.conf for any version."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.utils import instrumented_test_render
from template_partials.templatetags.partials import TemplateProxy

from runs.configurations.services import configurations, fitted_configurations
from runs.configurations.services.configurations import Content
from runs.models import Configuration, Project, Run
from runs.postgresql_settings import fitting
from runs.queue.services import results as findings
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def contexts_of_parts(monkeypatch):
    """A response tells its context also where only a part of a template is rendered."""
    monkeypatch.setattr(TemplateProxy, "_render", instrumented_test_render)


@pytest.fixture
def old(db):
    """One of somebody's own, in the words of 9.3."""
    return configurations.create(
        name="Old words",
        description="for tests",
        content=Content({"checkpoint_segments": "16", "work_mem": "8MB"}, (), "9.3"),
    )


def sent(**changed):
    """What the editor sends."""
    return {
        "name": "Mine",
        "description": "",
        "written_for": "",
        "text": "work_mem = 8MB\n",
        "initdb_options": "",
        "majors": ["9.3", "18"],
        "server": "",
        **changed,
    }


def body(response):
    assert response.status_code == 200
    return response.content.decode()


def test_the_list_tells_origin_version_and_uses(client, old):
    configurations.sync()
    factories.campaign(configuration=old, factors={"version": ["16.14"]}, repeats=1)
    page = body(client.get("/configurations/"))
    assert "PostgreSQL defaults" in page
    assert "built in" in page
    listed = client.get("/configurations/").context["rows"]
    rows = {each.slug: count for each, count, _told in listed}
    assert rows == {"old-words": 1, "fixed-point-small": 0, "postgresql-defaults": 0}


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ("q=checkpoint_segments", ["old-words"]),
        ("q=old+tests", ["old-words"]),
        ("q=nothing", []),
        ("origin=built_in", ["fixed-point-small", "postgresql-defaults"]),
        ("origin=own&q=fixed", []),
    ],
)
def test_the_list_is_searched_by_words_settings_and_origin(client, old, query, slugs):
    configurations.sync()
    rows = client.get(f"/configurations/?{query}").context["rows"]
    assert [each.slug for each, *_count in rows] == slugs


def test_the_lists_queries_do_not_grow(client, django_assert_num_queries):
    for number in range(8):
        made = factories.configuration(f"number-{number}")
        factories.campaign(configuration=made, factors={"version": []}, repeats=1)
    with django_assert_num_queries(4):
        client.get("/configurations/")


def test_a_private_campaign_is_not_told_to_others(client, old):
    private = Project.objects.create(slug="secret", name="secret", is_public=False)
    factories.campaign(
        "hush", configuration=old, project=private, factors={"version": []}, repeats=1
    )
    assert client.get("/configurations/").context["rows"][0][1] == 0
    assert "hush" not in body(client.get("/configurations/old-words/"))


def test_the_page_gives_each_setting_its_meaning(client, old):
    page = client.get("/configurations/old-words/")
    segments = page.context["meanings"][0]
    assert (segments["default"], segments["versions"]) == ("3", "9.2-9.4")
    assert "Sets the maximum distance in log segments" in body(page)


def test_the_page_translates_with_reasons(client, old):
    page = client.get("/configurations/old-words/?version=18")
    assert page.context["fitted"].settings["max_wal_size"] == "768MB"
    assert "checkpoint_segments = 16 →" in " ".join(body(page).split())
    assert "max_wal_size = 3 x checkpoint_segments x 16MB" in body(page)


def test_the_file_of_a_version_is_in_its_words_and_tells_the_changes(client, old):
    response = client.get("/configurations/old-words/postgresql.conf?version=17")
    text = response.content.decode()
    assert (
        response.headers["Content-Disposition"]
        == 'attachment; filename="old-words-17.conf"'
    )
    assert "\nmax_wal_size = 768MB\n" in text
    assert "# checkpoint_segments = 16 -> max_wal_size = 768MB: " in text
    assert "\ncheckpoint_segments" not in text


def test_a_visitor_reads_but_does_not_edit(client, old):
    for path in ("new/", "old-words/edit/"):
        assert client.get(f"/configurations/{path}").status_code == 302
        assert client.post(f"/configurations/{path}", sent(store=1)).status_code == 302
    assert client.post("/configurations/check/", sent()).status_code == 302
    assert Configuration.objects.count() == 1


def test_what_is_sent_is_stored_as_ones_own(member):
    response = member.post(
        "/configurations/new/",
        sent(store=1, initdb_options="--data-checksums --wal-segsize=64"),
    )
    made = Configuration.objects.get()
    assert response.url == "/configurations/mine/"
    assert (made.settings, made.origin) == ({"work_mem": "8MB"}, "own")
    assert made.initdb_options == ["--data-checksums", "--wal-segsize=64"]
    assert made.created_by.username == "ichiro"


def test_editing_keeps_what_was_there_in_the_history(member, old):
    member.post(
        "/configurations/old-words/edit/",
        sent(store=1, name="Newer", text="jit = off\n"),
    )
    old.refresh_from_db()
    assert (old.name, old.settings) == ("Newer", {"jit": "off"})
    [new, first] = old.revisions.order_by("-number")
    assert first.settings == {"checkpoint_segments": "16", "work_mem": "8MB"}
    assert new.created_by.username == "ichiro"
    page = body(member.get("/configurations/old-words/"))
    assert "work_mem: 8MB → –" in page


def test_what_comes_with_benchlab_is_copied_and_not_changed(member, admin_client):
    configurations.sync()
    path = "/configurations/postgresql-defaults/edit/"
    assert member.post(path, sent(store=1)).status_code == 403
    assert "Make a copy and change that." in body(
        admin_client.post(path, sent(store=1))
    )
    assert Configuration.objects.get(slug="postgresql-defaults").settings == {}
    copy = member.get("/configurations/new/?from=fixed-point-small")
    assert "shared_buffers = 512MB" in body(copy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("work_mem = 4kB", "Choose a value from 64kB to 2TB."),
        ("shared_bufers = 1GB", "Did you mean shared_buffers?"),
        ("wal_level = bogus", "Choose one of"),
        ("work_mem 8 MB\n", "Some lines are not settings"),
    ],
)
def test_wrong_settings_are_refused_with_name_and_range(member, text, message):
    page = body(member.post("/configurations/new/", sent(store=1, text=text)))
    assert message in page
    assert not Configuration.objects.exists()


@pytest.mark.parametrize(
    "option", ["-D/tmp/x", "--pwfile=/etc/passwd", "--waldir=/x", "-Atrust"]
)
def test_initdb_options_that_reach_out_are_refused(member, option):
    page = body(
        member.post("/configurations/new/", sent(store=1, initdb_options=option))
    )
    assert "cannot be given here" in page
    assert not Configuration.objects.exists()


def test_a_file_takes_the_place_of_the_text(member):
    file = SimpleUploadedFile("postgresql.conf", b"# mine\nshared_buffers = 1GB # so\n")
    page = body(member.post("/configurations/new/", sent(read=1, name="", file=file)))
    assert "shared_buffers = 1GB # so" in page
    assert not Configuration.objects.exists()
    file = SimpleUploadedFile("postgresql.conf", b"shared_buffers = 1GB\n")
    member.post("/configurations/new/", sent(store=1, file=file))
    assert Configuration.objects.get().settings == {"shared_buffers": "1GB"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", "The file is no text in UTF-8."),
        (b"#" * 70_000, "The file is larger than 64 kB."),
        (b"\n".join(b"x.y%d = 1" % n for n in range(501)), "More than 500 settings."),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(member, content, message):
    file = SimpleUploadedFile("postgresql.conf", content)
    assert message in body(
        member.post("/configurations/new/", sent(store=1, file=file))
    )
    assert not Configuration.objects.exists()


def check(member, text, **changed):
    response = member.post("/configurations/check/", sent(text=text, **changed))
    assert response.status_code == 200
    return {
        (remark.line, remark.severity, remark.code)
        for remark in response.context["line_remarks"]
    }


def test_the_check_tells_each_line_what_is_wrong_with_it(member):
    text = "work_mem = 8MB\n\nfsync = perhaps\nport = 1\nautovacuum = off\nwork_mem = 9MB\n!\n"
    assert check(member, text) == {
        (1, "warning", "set_again"),
        (3, "error", "invalid_boolean"),
        (4, "info", "left_out"),
        (5, "warning", "not_comparable"),
        (7, "error", "syntax_error"),
    }


def test_the_check_translates_for_the_versions_that_are_ticked(member):
    assert check(member, "checkpoint_segments = 16", majors=["9.3"]) == set()
    found = check(member, "checkpoint_segments = 16", majors=["9.3", "18"])
    assert found == {(1, "info", "translated"), (1, "warning", "not_as_written")}
    newest = check(member, "checkpoint_segments = 16", majors=["18"], written_for="18")
    assert newest == {(1, "error", "removed")}


def test_the_check_answers_for_the_file_and_for_a_run(member):
    text = "work_mem = 8MB\nstats_temp_directory = 'x'\njit = off\n"
    data = {"text": text, "majors": ["12", "17"], "written_for": "12"}
    panel = member.post("/configurations/check/", data).content.decode()
    assert "PostgreSQL 17: translated for a run here, it starts." in panel
    assert "These versions start" not in panel
    assert "stats_temp_directory was removed after PostgreSQL 14." in panel
    assert "Read as postgresql.conf: 3 settings." in panel
    assert "PostgreSQL 12: a server starts with this file as it is." in panel


def test_the_check_shows_what_it_has_read(member):
    text = "services:\n  db:\n    command: [postgres, -c, 'log_line_prefix=%m [%p] ']\n"
    data = {"text": text, "majors": ["18"]}
    panel = member.post("/configurations/check/", data).content.decode()
    assert "Read as YAML: 1 setting." in panel
    assert "log_line_prefix = %m [%p] " in panel


def test_the_download_is_ones_own_file(member):
    configuration = factories.configuration(
        "own",
        settings={
            "archive_mode": "on",
            "archive_command": "pgbackrest x",
            "work_mem": "8MB",
        },
    )
    address = f"/configurations/{configuration.slug}/postgresql.conf"
    own = member.get(address, {"version": "18"}).content.decode()
    assert "archive_command = 'pgbackrest x'" in own
    assert "A run of BenchLab leaves out or sets itself: archive_command." in own
    of_run = member.get(address, {"version": "18", "of": "run"}).content.decode()
    assert "pgbackrest" not in "".join(
        line for line in of_run.splitlines() if not line.startswith("#")
    )
    assert "For a run of BenchLab" in of_run


def test_the_check_sums_up_the_memory_of_a_server(member):
    factories.server("small", name="small")
    found = check(member, "shared_buffers = 8GB", server="small")
    assert (1, "error", "shared_buffers_too_large") in found
    assert check(member, "shared_buffers = 8GB") == set()


def test_the_check_knows_the_huge_pages_of_a_server(member):
    environment = factories.environment("without huge pages")
    environment.facts = {
        "kernel_settings": {"vm.nr_hugepages": "0"},
        "limits": {"open_files": 1024},
    }
    environment.save()
    factories.server("none", name="none", environment=environment)
    found = check(member, "huge_pages = on", server="none")
    assert (1, "error", "no_huge_pages") in found
    assert (1, "warning", "few_open_files") in check(
        member, "max_files_per_process = 2000", server="none"
    )
    for text, server in (("huge_pages = try", "none"), ("huge_pages = on", "")):
        codes = {code for _line, _severity, code in check(member, text, server=server)}
        assert "no_huge_pages" not in codes


def test_names_are_completed_with_their_facts(client):
    answer = json.loads(
        client.get(
            "/configurations/names/?prefix=checkpoint_s&majors=9.3&majors=18"
        ).content
    )
    [found] = answer["names"]
    assert (found["name"], found["versions"]) == ("checkpoint_segments", "9.2-9.4")
    assert found["missing"] == ["18"]


@pytest.fixture
def matrix(known):
    """A server with 9.3 and 18."""
    server = factories.server("matrix", name="matrix")
    for version in ("9.3.25", "18.4"):
        number = factories.version_num(version)
        factories.installation(
            server, version, has_psql=True, pgbench_version_num=number
        )
    return server


def campaign_form(server, configuration):
    """What the form of a new campaign sends."""
    return {
        "title": "old and new",
        "scenario": "fixed-point-read",
        "server": server.slug,
        "installations": [each.pk for each in server.installations.all()],
        "clients": "1",
        "repeats": "1",
        "scale": "1",
        "duration": "5",
        "configuration": configuration.pk,
    }


def test_the_estimate_shows_each_version_its_translation(member, matrix, old):
    response = member.get("/campaigns/new/estimate/", campaign_form(matrix, old))
    [translation] = response.context["translations"]
    assert translation["versions"] == ["18.4"]
    page = " ".join(body(response).split())
    assert "PostgreSQL 18.4: 2 settings written differently" in page
    assert "checkpoint_segments = 16 → max_wal_size = 768MB" in page


def test_each_run_gets_its_versions_words_and_tells_them(member, matrix, old):
    member.post("/campaigns/new/", campaign_form(matrix, old))
    runs = {run.cell.version: run for run in Run.objects.select_related("cell")}
    assert runs["9.3.25"].plan["settings"] == {
        "checkpoint_segments": "16",
        "work_mem": "8MB",
    }
    assert runs["9.3.25"].plan["translated"] == []
    assert runs["18.4"].plan["settings"]["max_wal_size"] == "768MB"
    page = body(member.get(f"/runs/{runs['18.4'].pk}/"))
    assert "2 settings written differently" in " ".join(page.split())
    assert "written differently" not in body(member.get(f"/runs/{runs['9.3.25'].pk}/"))


def test_a_campaign_shows_what_its_configuration_contained_then(member, matrix, old):
    member.post("/campaigns/new/", campaign_form(matrix, old))
    configurations.edit(
        configuration=old,
        name="Old words",
        description="",
        content=Content({"jit": "off"}),
    )
    page = body(member.get("/campaigns/old-and-new/"))
    assert "checkpoint_segments = 16" in page
    assert "jit = off" not in page
    plan = Run.objects.filter(cell__version="9.3.25").get().plan
    assert plan["settings"]["checkpoint_segments"] == "16"


def test_a_wrong_setting_is_refused_at_the_campaigns_form(member, matrix):
    wrong = factories.configuration(settings={"work_mem": "1kB"})
    response = member.post("/campaigns/new/", campaign_form(matrix, wrong))
    [error] = response.context["form"].errors["configuration"]
    assert "PostgreSQL 9.3, 18: work_mem = 1kB is outside the range" in error
    assert "Choose a value from 64kB to 2TB." in error
    assert not Run.objects.exists()


# Settings of two runs, cells, campaigns or configurations, side by side.


def printed(**settings):
    """pg_settings as a server prints them: name=(setting, unit, source)."""
    return findings.snapshot(
        settings={
            name: {"setting": setting, "unit": unit, "source": source}
            for name, (setting, unit, source) in settings.items()
        }
    )


ONE = {
    "work_mem": ("4096", "kB", "default"),
    "shared_buffers": ("16384", "8kB", "configuration file"),
    "max_wal_size": ("1024", "MB", "default"),
    "data_directory": ("/a", "", "override"),
}
OTHER = ONE | {
    "work_mem": ("65536", "kB", "configuration file"),
    "data_directory": ("/b", "", "override"),
}


@pytest.fixture
def runs(db):
    """Two runs of a campaign of 18 with other work_mem."""
    campaign = factories.campaign("one", factors={"version": ["18.4"]}, repeats=2)
    first, second = campaign.runs.order_by("pk")
    first.settings, second.settings = printed(**ONE), printed(**OTHER)
    first.save()
    second.save()
    return first, second


@pytest.fixture
def diff(client):
    """The rows of a difference as texts, and the response."""

    def compare(a, b, **query):
        response = client.get("/configurations/diff/", {"a": a, "b": b, **query})
        assert response.status_code == 200
        rows = {}
        for row in response.context.get("rows", []):
            rows[row.name] = (
                [value.text for value in row.a],
                [value.text for value in row.b],
            )
        return rows, response

    return compare


def test_two_runs_differ_in_what_their_servers_showed(diff, runs):
    rows, response = diff(f"run:{runs[0].pk}", f"run:{runs[1].pk}")
    assert rows == {"work_mem": (["4MB"], ["64MB"])}
    [row] = response.context["rows"]
    assert (row.a[0].is_default, row.b[0].is_default) == (True, False)


def test_all_settings_are_shown_where_that_is_asked(diff, runs):
    rows, _response = diff(f"run:{runs[0].pk}", f"run:{runs[1].pk}", all="1")
    assert set(rows) == {"work_mem", "shared_buffers", "max_wal_size"}
    assert rows["shared_buffers"] == (["128MB"], ["128MB"])


def test_of_a_campaign_and_a_cell_every_value_is_shown(diff, runs):
    for side in ("campaign:one", f"cell:{runs[0].cell_id}"):
        rows, _response = diff(side, f"run:{runs[0].pk}")
        assert sorted(rows["work_mem"][0]) == ["4MB", "64MB"]


def test_a_configuration_is_compared_in_the_words_of_the_runs_version(diff, runs):
    configurations.store(
        slug="old",
        name="old",
        description="",
        content=Content({"checkpoint_segments": "16", "work_mem": "4096"}, [], "9.3"),
    )
    rows, _response = diff(f"run:{runs[0].pk}", "configuration:old")
    assert rows["max_wal_size"] == (["1GB"], ["768MB"])
    assert "work_mem" not in rows
    assert "checkpoint_segments" not in rows


def test_what_nobody_chose_is_no_difference_to_a_configuration(diff, db):
    """Presets, built-in values of other versions, and what initdb writes by the machine."""
    content = Content({"work_mem": "16MB", "jit": "off"}, [], "18")
    configurations.store(slug="used", name="used", description="", content=content)
    campaign = factories.campaign(
        "two", factors={"version": ["16.14", "18.4"]}, repeats=1
    )
    shown = {
        "work_mem": ("16384", "kB", "configuration file"),
        "jit": ("on", "", "default"),
        "block_size": ("8192", "", "default"),
        "wal_buffers": ("2048", "8kB", "override"),
        "lc_messages": ("C", "", "configuration file"),
        "TimeZone": ("Etc/UTC", "", "configuration file"),
        "shared_buffers": ("16384", "8kB", "configuration file"),
        "max_wal_size": ("4096", "MB", "configuration file"),
    }
    for run, (version, connections) in zip(
        campaign.runs.order_by("pk"),
        (("160014", "300"), ("180004", "500")),
        strict=True,
    ):
        several = {
            "max_connections": (connections, "", "configuration file"),
            "server_version_num": (version, "", "default"),
        }
        run.settings = printed(**shown, **several)
        run.save()
    for sides in (
        ("campaign:two", "configuration:used"),
        ("configuration:used", "campaign:two"),
    ):
        rows, response = diff(*sides)
        assert rows.keys() == {"jit", "max_connections", "max_wal_size"}
        page = " ".join(response.content.decode().split())
        assert "PostgreSQL 16, 18</th>" in page
        assert "3 of 4 settings differ" in page
    row = next(
        each for each in response.context["rows"] if each.name == "max_connections"
    )
    assert {each.text: each.majors for each in row.b} == {
        "300": ("16",),
        "500": ("18",),
    }


def test_comparing_nothing_says_what_to_write(client, db):
    page = client.get("/configurations/diff/", {"a": "", "b": ""}).content.decode()
    assert "Write into both A and B what to compare" in page
    for address in ("/configurations/diff/", "/configurations/diff/?a=configuration:x"):
        assert "Write into both A and B" not in client.get(address).content.decode()


def test_two_configurations_are_compared_with_their_versions_defaults(diff, db):
    configurations.sync()
    rows, _response = diff(
        "configuration:postgresql-defaults", "configuration:fixed-point-small"
    )
    assert rows["autovacuum"] == (["on"], ["off"])
    assert rows["work_mem"] == (["4MB"], ["16MB"])
    assert "jit" not in rows


def test_configurations_of_two_versions_are_compared_as_the_newer_gets_them(diff, db):
    for slug, settings, major in (
        ("old", {"checkpoint_segments": "16"}, "9.3"),
        ("new", {"max_wal_size": "768MB"}, "17"),
    ):
        content = Content(settings, [], major)
        configurations.store(slug=slug, name=slug, description="", content=content)
    rows, _response = diff("configuration:old", "configuration:new")
    assert rows == {"min_wal_size": (["528MB"], ["80MB"])}


@pytest.mark.parametrize(
    "reference",
    [
        "run:999999",
        "run:x",
        "run:" + "9" * 30,
        "run:٣",
        "cell:0",
        "campaign:none",
        "x",
        "nothing:1",
    ],
)
def test_what_is_not_there_is_named(diff, runs, reference):
    rows, response = diff(reference, f"run:{runs[0].pk}")
    assert rows == {}
    assert "Write run:12, cell:7, campaign:slug" in response.content.decode()


def test_a_private_run_is_not_there_for_a_visitor(
    diff, runs, client, django_user_model
):
    campaign = runs[0].campaign
    campaign.project = Project.objects.create(
        slug="secret", name="secret", is_public=False
    )
    campaign.save()
    sides = (f"run:{runs[0].pk}", f"run:{runs[1].pk}")
    for side in (*sides, f"cell:{runs[0].cell_id}", "campaign:one"):
        assert diff(side, sides[0])[0] == {}
    member = django_user_model.objects.create_user("m")
    campaign.project.members.add(member)
    client.force_login(member)
    assert set(diff(*sides)[0]) == {"work_mem"}


def test_the_queries_do_not_grow_with_the_runs(client, django_assert_max_num_queries):
    for slug in ("few", "many"):
        repeats = {"few": 1, "many": 12}[slug]
        campaign = factories.campaign(
            slug, factors={"version": ["18.4"]}, repeats=repeats
        )
        campaign.runs.update(settings=printed(**ONE))
    for slug in ("few", "many"):
        with django_assert_max_num_queries(7):
            client.get(f"/configurations/diff/?a=campaign:{slug}&b=campaign:few")


def test_run_and_campaign_lead_to_it(client, runs):
    made = configurations.built_in()
    campaign = runs[0].campaign
    campaign.configuration = made
    campaign.save()
    factories.finish(runs[0], tps=1)
    run_page = client.get(f"/runs/{runs[0].pk}/").content.decode()
    assert f"?a=run:{runs[0].pk}&amp;b=configuration:fixed-point-small" in run_page
    campaign_page = client.get("/campaigns/one/").content.decode()
    assert "?a=campaign:one&amp;b=configuration:fixed-point-small" in campaign_page


def test_the_built_in_values_are_called_so(client, db):
    configurations.sync()
    page = " ".join(
        client.get("/configurations/fixed-point-small/").content.decode().split()
    )
    assert '<th scope="col">Built-in value</th>' in page
    assert "usually 128MB of shared_buffers" in page


def test_versions_that_say_the_same_are_told_in_one_sentence():
    findings = fitting.merged_findings(
        [fitting.fit({"nothing_known": "1"}, major) for major in ("15", "16", "18")]
    )
    message, _remedy = fitted_configurations.words(findings[0])
    assert message == "There is no setting nothing_known in PostgreSQL 15, 16 and 18."
