"""The archive as a folder: every link leads to a file of it, and nothing private is in it."""

import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from runs.archive import services
from runs.archive.services import static_site
from runs.archive.services.static_page import StaticPage
from runs.models import Campaign, Project
from runs.published import reading
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db
LINKS = ("href", "src", "action", "data-plotly")


class Names(HTMLParser):
    """All that a page names, and its identifiers."""

    def __init__(self, text):
        super().__init__()
        self.named, self.ids, self.tags = [], set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            if value and (
                name in LINKS or name.startswith("hx-") or value.startswith("/")
            ):
                self.named.append((name, value))


def crawl(folder):
    """The pages that the first one leads to, and what is at fault."""
    waiting, pages, faults = [folder / "index.html"], {}, []
    while waiting:
        path = waiting.pop()
        if path in pages:
            continue
        names = pages[path] = Names(path.read_text())
        if "form" in names.tags:
            faults.append((path, "has a form"))
        for name, value in names.named:
            parts = urlsplit(value)
            if parts.scheme in {"http", "https"} and name == "href":
                continue
            if (
                parts.scheme
                or parts.netloc
                or value.startswith("/")
                or name not in LINKS
            ):
                faults.append((path, f"{name}={value} needs the server"))
                continue
            target = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            if not target.is_file():
                faults.append((path, f"{value} is not there"))
            elif target.suffix == ".html":
                waiting.append(target)
    return pages, faults


@pytest.fixture
def one_publication(known):
    services.load(files=[path for path in reading.files() if path.stem == "wg1-2021"])


@pytest.fixture
def few_questions(monkeypatch):
    """Two pages of versions in place of a hundred."""
    monkeypatch.setattr(
        static_site, "_version_questions", lambda: ["/versions/?from=13&to=14"]
    )


def test_every_link_leads_to_a_file_and_each_page_says_whose_it_is(
    one_publication, few_questions, finished_campaign, tmp_path
):
    folder = tmp_path / "site"
    slug = finished_campaign.slug

    call_command("publish_site", folder, campaign=[slug], instance="lab.example")
    pages, faults = crawl(folder)

    assert faults == []
    assert set(folder.rglob("*.html")) == set(pages)
    texts = {path: path.read_text() for path in folder.rglob("*.html")}
    assert [path for path, text in texts.items() if "lab.example" not in text] == []
    for language in static_site.LANGUAGES:
        own = folder / language
        table = (own / "campaigns/wg1-2021-read/index.html").read_text()
        assert "437.2413" in table
        assert f'<html lang="{language}">' in table
        assert "437.2413" in (own / "campaigns/wg1-2021-read/data.csv").read_text()
        assert (
            json.loads((own / "archive/wg1-2021/data.json").read_text())["slug"]
            == "wg1-2021"
        )
        assert (own / f"campaigns/{slug}/index.html").is_file()
        assert (own / "versions/13-14/index.html").is_file()


def test_the_search_has_every_page_in_one_file(
    one_publication, few_questions, tmp_path
):
    written = static_site.publish(tmp_path / "site")
    text = (tmp_path / "site/ja" / static_site.INDEX).read_text()
    rows = json.loads(text.removeprefix("window.benchlabIndex = ").rstrip(";\n"))

    assert written.pages == 2 * len(rows) > 50
    assert all(
        (tmp_path / "site/ja" / unquote(row["address"])).is_file() for row in rows
    )
    assert any("フレームグラフ" in row["words"] for row in rows)


def test_nothing_of_any_private_project_enters(
    one_publication, few_questions, tmp_path
):
    scenarios.sync()
    words = []
    for number in range(3):
        project = Project.objects.create(
            slug=f"hidden-{number}", name=f"Hidden{number}", is_public=False
        )
        campaign = factories.campaign(
            f"secret-{number}",
            project=project,
            factors={"version": ["16.14", "18.4"], "clients": [1, 4]},
            scenario=factories.scenario("fixed-point-read"),
        )
        factories.finish_all(campaign)
        words += [campaign.slug, project.slug, project.name]

    static_site.publish(tmp_path / "site")
    content = b"".join(
        path.read_bytes() for path in (tmp_path / "site").rglob("*") if path.is_file()
    )

    assert [word for word in words if word.encode() in content] == []
    with pytest.raises(ServiceError, match="404"):
        static_site.publish(tmp_path / "site", campaigns=["secret-1"])
    assert Campaign.objects.filter(project__is_public=False).count() == 3


def test_a_folder_of_somebody_else_stays_and_one_of_ours_is_replaced(
    one_publication, few_questions, tmp_path
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    with pytest.raises(CommandError, match="Name a new folder"):
        call_command("publish_site", tmp_path / "mine")
    assert (tmp_path / "mine/letter.txt").read_text() == "dear"

    static_site.publish(tmp_path / "site")
    (tmp_path / "site/old.html").write_text("old")
    static_site.publish(tmp_path / "site")
    assert not Path(tmp_path / "site/old.html").exists()


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ('<a href="/known/">x</a>', '<a href="K">x</a>'),
        ('<a href="/unknown/">x</a>', "<a>x</a>"),
        (
            '<a href="https://a.example/?x=1&amp;y">x</a>',
            '<a href="https://a.example/?x=1&amp;y">x</a>',
        ),
        ('<p>a<form action="/f/"><input><b>x</b></form>b</p>', "<p>ab</p>"),
        ('<li><a class="button" href="/new/"><i>+</i>New</a></li>', "<li></li>"),
        (
            '<li><a class="button" href="/known/">x</a></li>',
            '<li><a class="button" href="K">x</a></li>',
        ),
        ('<p hx-get="/live/" data-url="/live/">x &amp; y</p>', "<p>x &amp; y</p>"),
        ('<script src="/unknown/"></script>', "<script></script>"),
        ('<link rel="next" href="?page=2">', ""),
        (
            '<svg viewBox="0 0 1 1"><path d="M0"/></svg>',
            '<svg viewbox="0 0 1 1"><path d="M0"/></svg>',
        ),
        ("<main><h1>t</h1></main>", "<main><h1>t</h1>END</main>"),
    ],
)
def test_a_page_is_written_without_its_server(page, written):
    result = StaticPage(
        "/here/", lambda address: "K" if address == "/known/" else None, "END"
    )
    result.feed(page)
    result.close()

    assert result.html == written
