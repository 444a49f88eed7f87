"""What all pages share: language, errors, login, scenarios, the style guide."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.cache import cache
from django.template.loader import get_template
from template_partials.templatetags.partials import TemplateProxy

from tests import texts
from tests.each import over

pytestmark = pytest.mark.django_db

JAPANESE = settings.BASE_DIR / "locale" / "ja" / "LC_MESSAGES" / "django.po"
TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))


def test_scenarios_are_listed_and_shown(client):
    assert "Fixed-point read" in client.get("/scenarios/").content.decode()
    page = client.get("/scenarios/fixed-point-read/").content.decode()
    assert "Scale factor" in page
    assert "Average latency" in page


def test_an_unknown_scenario_is_not_found(client):
    assert client.get("/scenarios/none/").status_code == 404


@pytest.fixture
def no_guesses():
    """Tests before may have guessed as many passwords as anybody may in a minute."""
    cache.clear()


def test_the_login_page_leads_back(client, django_user_model, no_guesses):
    django_user_model.objects.create_user("ichiro", password="secret")
    page = client.get("/login/?next=/servers/new/")
    assert "Everyone may read." in page.content.decode()
    sent = {"login": "ichiro", "password": "secret", "next": "/servers/new/"}
    assert client.post("/login/", sent).url == "/servers/new/"


def test_a_wrong_password_is_said(client, no_guesses):
    page = client.post("/login/", {"login": "x", "password": "y"}).content.decode()
    assert "The username and/or password you specified are not correct." in page


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


def test_the_style_guide_shows_every_component(client, monkeypatch):
    components = get_template("components.html").template.extra_data["partials"]
    shown, render = set(), TemplateProxy.render

    def noted(part, context):
        shown.add(part)
        return render(part, context)

    monkeypatch.setattr(TemplateProxy, "render", noted)
    client.get("/styleguide/")
    assert len(components) > 10
    assert {name for name, part in components.items() if part not in shown} == set()


# A report is one file that opens offline; it is no page of the site.
PAGES = [template for template in TEMPLATES if template.parent.name != "reports"]


@over(PAGES)
def test_no_template_has_inline_script_or_style(template: Path):
    text = template.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|<style", text)


def test_every_text_of_code_and_templates_is_translated_into_japanese():
    assert len(texts.in_code_and_templates()) > 2000
    assert texts.untranslated(JAPANESE) == []


def test_a_text_that_is_new_is_found_untranslated(tmp_path):
    code = tmp_path / "new.py"
    code.write_text('from x import ngettext\nsaid = _("A new " "text"), ngettext("one", "%d", 2)\n')
    page = '{% load i18n %}\n{% translate "Other" %}'
    page += '{% blocktranslate %}Says "it"{% endblocktranslate %}'

    assert list(texts.of_python(code)) == [(2, ("", "A new text")), (2, ("", "one"))]
    assert list(texts.of_template(page)) == [(2, ("", "Other")), (2, ("", 'Says "it"'))]


def test_a_catalogue_without_a_text_is_noticed(tmp_path):
    whole = JAPANESE.read_text()
    first = next(re.finditer(r'\nmsgid "([A-Z][a-z ]+)"\nmsgstr "[^"]+"\n', whole))
    short = tmp_path / "django.po"
    short.write_text(whole.replace(first[0], "\n"))

    assert [line for line in texts.untranslated(short) if repr(first[1]) in line]


def test_every_page_whose_parts_ask_again_loads_the_script_that_asks():
    """Without it a part with `hx-get` stands still for ever, and nothing says so."""
    folder = settings.BASE_DIR / "templates"
    sources = {str(each.relative_to(folder)): each.read_text() for each in TEMPLATES}
    part = r"""{%\s*partialdef ([\w-]+)( inline)? %}(.*?){%\s*endpartialdef \1 %}"""
    for name, text in list(sources.items()):
        sources |= {f"{name}#{each[1]}": each[3] for each in re.finditer(part, text, re.DOTALL)}
        # What is shown elsewhere, too, stays where it is shown.
        sources[name] = re.sub(part, lambda each: each[3] if each[2] else "", text, flags=re.DOTALL)

    def parts(name):
        found = set(re.findall(r"""{%\s*include\s+["']([^"']+)["']""", sources[name]))
        own = re.findall(r"{%\s*partial ([\w-]+) %}", sources[name])
        found |= {f"{name.partition('#')[0]}#{each}" for each in own}
        return {name}.union(*(parts(each) for each in found if each in sources))

    asking = [
        name
        for name, text in sources.items()
        if '{% extends "base.html" %}' in text
        and any("hx-get" in sources[each] for each in parts(name))
    ]
    assert "servers/detail.html" in asking
    assert [name for name in asking if "{% htmx_script %}" not in sources[name]] == []
