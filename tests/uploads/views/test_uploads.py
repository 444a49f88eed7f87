"""A result by hand: what would be stored is shown, and then it is stored once."""

import html
import io
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from runs.access.services import projects
from runs.importers.registry import IMPORTERS
from runs.models import Project, Run
from runs.reading import process
from runs.shared import database
from runs.uploads.views import PEER
from tests.unit.tools.pgbench.samples import sample
from tests.unit.tools.reading import sample as tool_sample
from tests.uploads.services.test_importing import PEERS

pytestmark = pytest.mark.django_db
TEXT = sample("18.6/a_tpcb").stdout


def sent(client, text=TEXT, tool="pgbench", *, pasted="", **fields):
    body = {
        "text": pasted,
        "tool": tool,
        "campaign": "by-hand",
        "project": fields["project"] if "project" in fields else projects.default().pk,
        "file": SimpleUploadedFile("out.txt", text.encode()),
        **fields,
    }
    return client.post(reverse("upload-new"), body)


def confirmed(client, page):
    """Press the button of the preview, with what its hidden fields have."""
    preview = page.content.decode().partition('name="store"')[0]
    found = re.findall(r'type="hidden"\s+name="(\w+)"\s+value="([^"]*)"', preview)
    fields = {name: html.unescape(value).replace("\n", "\r\n") for name, value in found}
    return client.post(reverse("upload-new"), fields | {"store": "1"}, follow=True)


def test_reading_the_form_writes_nothing_and_the_first_upload_makes_the_project(
    admin_client,
):
    admin_client.get(reverse("upload-new"))
    assert not Project.objects.exists()

    confirmed(admin_client, sent(admin_client, project=""))

    assert Run.objects.get().campaign.project.slug == "default"
    assert (
        ">Default</option>" in admin_client.get(reverse("upload-new")).content.decode()
    )


def test_a_file_is_shown_and_stored_when_that_is_confirmed(admin_client):
    page = sent(admin_client, sha="9f86d08188", branch="main")

    assert "What would be stored" in page.content.decode()
    assert not Run.objects.exists()

    answer = confirmed(admin_client, page)

    run = Run.objects.get()
    assert answer.redirect_chain[-1][0] == reverse("run-detail", args=[run.pk])
    tps = float(re.search(r"^tps = ([\d.]+)", TEXT, re.MULTILINE)[1])
    assert run.measurements.get(metric__name="tps").value == tps
    assert (run.state, run.cell.revision.sha) == ("finished", "9f86d08188")
    assert run.cell.levels["version"] == run.server_version
    assert run.artifacts.get().name == "stdout"
    # Its own life, not that of a run that was executed here.
    page = answer.content.decode()
    assert "<td>uploaded</td>" in page
    assert not any(part in page for part in ('class="phases"', 'id="commands"'))


def test_what_is_wrong_with_a_run_is_told_in_the_readers_language(admin_client):
    def get(path, language):
        return admin_client.get(path, headers={"Accept-Language": language})

    admin_client.defaults["HTTP_ACCEPT_LANGUAGE"] = "ja"
    japanese = (
        "出力に複数の結果が含まれているか、同じ結果の行が重複しています。2件目は "
    )
    preview = sent(admin_client, TEXT * 2)
    assert japanese in preview.content.decode()
    page = confirmed(admin_client, preview)
    assert japanese in page.content.decode()
    path = f"/api/v1{page.redirect_chain[-1][0]}"
    assert get(path, "ja").json()["message"].startswith(japanese)
    english = "The output holds more than one result, or lines of one twice. The second is there by"
    assert get(path, "en").json()["message"].startswith(english)
    assert Run.objects.get().message.startswith(english)
    # One that was stored before there were wordings.
    Run.objects.update(wording={}, message="xyz")
    assert "xyz" in get(page.redirect_chain[-1][0], "ja").content.decode()


def test_the_same_text_is_the_same_run(admin_client):
    for _time in range(2):
        answer = confirmed(admin_client, sent(admin_client))

    assert Run.objects.count() == 1
    assert "This text was stored before" in answer.content.decode()


@pytest.mark.parametrize("peer", PEERS)
def test_what_a_peer_has_kept_is_shown_and_comes_in_once(admin_client, tmp_path, peer):
    make, _figures, _levels, count, left_out = PEERS[peer]
    (folder := tmp_path / "peer").mkdir()
    source = make(folder)
    if source.is_dir():
        source = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", source))

    for there in (0, count):
        file = SimpleUploadedFile("results", source.read_bytes())
        page = sent(
            admin_client, file=file, tool=f"{PEER}{peer.partition(' ')[0]}", campaign=""
        )
        assert Run.objects.count() == there
        assert len(page.context["left_out"]) == left_out
        answer = confirmed(admin_client, page)
        told = f"{count - there} runs are new, {there} were there."
        assert told in answer.content.decode()


@pytest.mark.parametrize(
    "content", [b"tps = 5", b"PK\3\4 cut", b"SQLite format 3\0 cut"]
)
@pytest.mark.parametrize("peer", IMPORTERS)
def test_a_file_that_is_not_the_peers_is_named(admin_client, peer, content):
    admin_client.defaults["HTTP_ACCEPT_LANGUAGE"] = "ja"
    page = sent(
        admin_client,
        file=SimpleUploadedFile("x", content),
        tool=PEER + peer,
        campaign="",
    )

    assert re.search("[ぁ-ん]", page.context["form"].errors["file"][0])
    assert not Run.objects.exists()


def test_another_tools_file_is_read_as_that_tools(admin_client):
    page = sent(admin_client, tool="sysbench")

    assert page.context["reading"].tool_name == "pgbench"
    assert "A finished run of pgbench." in page.content.decode()


def test_a_pasted_text_needs_no_tool_and_no_campaign(admin_client):
    page = sent(admin_client, file="", pasted=TEXT, tool="", campaign="")

    assert "It goes into the campaign pgbench." in page.content.decode()

    confirmed(admin_client, page)

    assert Run.objects.get().campaign.slug == "pgbench"


def test_what_nobody_knows_stays_in_the_form_with_what_to_do(admin_client):
    page = sent(
        admin_client, "Nothing that a tool prints.\n", tool="", sha="9f86d08188"
    )

    told = page.content.decode()
    assert "No tool that is known here has printed this." in told
    assert ">\nNothing that a tool prints." in told
    assert 'value="9f86d08188"' in told
    assert not Run.objects.exists()


def test_a_campaigns_name_becomes_its_address(admin_client):
    confirmed(admin_client, sent(admin_client, campaign="My tests"))

    assert Run.objects.get().campaign.slug == "my-tests"
    assert "such as nightly" in sent(admin_client, campaign="夜間").content.decode()


def test_a_tool_that_keeps_results_too_is_read_as_a_tool(admin_client):
    page = sent(admin_client, tool_sample("hammerdb", "timed.log").decode(), "hammerdb")

    assert page.context["reading"].tool_name == "hammerdb"


def test_a_run_of_pgbench_needs_the_servers_version(admin_client):
    old = sample("13.12/a_tpcb").stdout

    assert (
        "which PostgreSQL was measured" in sent(admin_client, text=old).content.decode()
    )
    never = sent(admin_client, text=old, version="42.1").content.decode()
    assert "There is no PostgreSQL 42.1." in never
    other = sent(admin_client, text=sample("18.6/a_tpcb").stdout, version="13.12")
    assert "18.6" in other.content.decode()
    assert not Run.objects.exists()
    confirmed(admin_client, sent(admin_client, text=old, version="13.12"))

    assert Run.objects.get().server_version == "13.12"


def test_a_form_without_a_file_says_so(admin_client):
    page = sent(admin_client, file="")

    assert "Choose the file" in page.content.decode()


def test_nobody_else_uploads(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("viewer"))
    projects.default()

    answer = sent(client)

    assert not Run.objects.exists()
    assert "What would be stored" not in answer.content.decode()


def test_a_file_that_takes_too_long_is_refused_with_the_reason(
    admin_client, monkeypatch
):
    monkeypatch.setattr(process, "WAIT_SECONDS", 0.5)
    admin_client.defaults["HTTP_ACCEPT_LANGUAGE"] = "ja"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(
            "composite.xml",
            f"<PhoronixTestSuite>{'<Result/>' * 10**6}</PhoronixTestSuite>",
        )
    file = SimpleUploadedFile("x.zip", content.getvalue())

    page = sent(admin_client, file=file, tool=f"{PEER}phoronix", campaign="")

    assert page.status_code == 422
    assert "0.5 秒より長くかかりました。" in page.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_request_that_waits_for_a_reader_holds_no_connection(
    admin_client, monkeypatch
):
    given_back = []
    monkeypatch.setattr(database, "give_back", lambda: given_back.append(True))

    sent(admin_client)
    assert not given_back  # it is small, and read at once
    page = sent(admin_client, TEXT + "x\n" * process.SMALL_CHARACTERS)

    assert given_back
    assert page.status_code == 200
