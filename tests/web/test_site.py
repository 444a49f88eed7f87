"""What all pages share: language, errors, login, scenarios, the style guide."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from django.conf import settings
from django.template.loader import get_template

pytestmark = pytest.mark.django_db

COMPONENTS = sorted((settings.BASE_DIR / "templates" / "components").glob("[!_]*.html"))
TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))


def test_scenarios_are_listed_and_shown(client):
    assert "Fixed-point read" in client.get("/scenarios/").content.decode()
    page = client.get("/scenarios/fixed-point-read/").content.decode()
    assert "Scale factor" in page
    assert "Average latency" in page


def test_an_unknown_scenario_is_not_found(client):
    assert client.get("/scenarios/none/").status_code == 404


def test_the_login_page_leads_back(client, django_user_model):
    django_user_model.objects.create_user("ichiro", password="secret")
    page = client.get("/login/?next=/servers/new/")
    assert "Everyone may read." in page.content.decode()
    sent = {"username": "ichiro", "password": "secret", "next": "/servers/new/"}
    assert client.post("/login/", sent).url == "/servers/new/"


def test_a_wrong_password_is_said(client):
    page = client.post("/login/", {"username": "x", "password": "y"}).content.decode()
    assert "Please enter a correct username and password." in page


def test_the_language_is_switched(client):
    client.post("/i18n/setlang/", {"language": "ja", "next": "/"})
    page = client.get("/").content.decode()
    assert '<html lang="ja">' in page
    assert "サーバ" in page


def test_the_browsers_language_is_followed(client):
    assert "検証シナリオ" in client.get("/", headers={"Accept-Language": "ja"}).content.decode()


def test_a_form_without_its_token_is_refused_in_words(client):
    client.handler.enforce_csrf_checks = True
    response = client.post("/login/", {"username": "x"})
    assert response.status_code == 403
    assert "The form has expired" in response.content.decode()


def test_a_fault_of_ours_has_a_page_that_needs_nothing(client):
    assert "It is ours, not yours" in get_template("500.html").render()


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda path: path.stem)
def test_the_style_guide_shows_every_component(client, component):
    names = [template.name for template in client.get("/styleguide/").templates]
    assert f"components/{component.name}" in names


# A report is one file that opens offline; it is no page of the site.
PAGES = [template for template in TEMPLATES if template.parent.name != "reports"]


@pytest.mark.parametrize("template", PAGES, ids=lambda path: str(path.name))
def test_no_template_has_inline_script_or_style(template: Path):
    text = template.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|<style", text)


def test_every_text_is_translated_into_japanese():
    path = settings.BASE_DIR / "locale" / "ja" / "LC_MESSAGES" / "django.po"
    with path.open("rb") as file:
        catalog = read_po(file, locale="ja")
    texts = [message for message in catalog if message.id]
    assert len(texts) > 300
    assert [message.id for message in texts if message.fuzzy or not all(message.string)] == []
