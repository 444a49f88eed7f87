"""What all pages share: formats, headers, the first page, and texts."""

import gzip
import re
import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.template import Context, Template
from django.template.loader import get_template
from django.utils import translation
from template_partials.templatetags.partials import TemplateProxy

from benchlab import gunicorn, middleware
from benchlab.gunicorn import ImpatientSocket
from runs.models import Campaign, Run
from runs.shared import formats
from runs.shared.api import rate_limit
from tests import factories, texts
from tests.each import over

# What all pages share: language, errors, login, scenarios, the style guide.


JAPANESE = settings.BASE_DIR / "locale" / "ja" / "LC_MESSAGES" / "django.po"
TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))


@pytest.mark.django_db
def test_scenarios_are_listed_and_shown(client):
    assert "Fixed-point read" in client.get("/scenarios/").content.decode()
    page = client.get("/scenarios/fixed-point-read/").content.decode()
    assert "Scale factor" in page
    assert "Average latency" in page


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/", "/help/", "/compare/", "/campaigns/plain/"])
def test_each_page_describes_itself_once_to_search_engines(client, address):
    factories.campaign(slug="plain")
    page = client.get(address).content.decode()
    (description,) = re.findall(r'<meta name="description"\s+content="([^"]+)"', page)
    assert len(description) > 20


@pytest.mark.django_db
def test_an_unknown_scenario_is_not_found(client):
    assert client.get("/scenarios/none/").status_code == 404


@pytest.fixture
def no_guesses():
    """Tests before may have guessed as many passwords as anybody may in a minute."""
    cache.clear()


@pytest.mark.django_db
def test_the_login_page_leads_back(client, django_user_model, no_guesses):
    django_user_model.objects.create_user("ichiro", password="secret")
    page = client.get("/login/?next=/servers/new/")
    assert "Everyone can read." in page.content.decode()
    sent = {"login": "ichiro", "password": "secret", "next": "/servers/new/"}
    assert client.post("/login/", sent).url == "/servers/new/"


@pytest.mark.django_db
def test_a_wrong_password_is_said(client, no_guesses):
    page = client.post("/login/", {"login": "x", "password": "y"}).content.decode()
    assert "The username and/or password you specified are not correct." in page


@pytest.mark.django_db
def test_the_language_is_switched(client):
    client.post("/i18n/setlang/", {"language": "ja", "next": "/"})
    page = client.get("/").content.decode()
    assert '<html lang="ja">' in page
    assert "サーバ" in page


@pytest.mark.django_db
def test_the_browsers_language_is_followed(client):
    assert (
        "トピック"
        in client.get("/", headers={"Accept-Language": "ja"}).content.decode()
    )


@pytest.mark.django_db
def test_a_form_without_its_token_is_refused_in_words(client):
    client.handler.enforce_csrf_checks = True
    response = client.post("/login/", {"username": "x"})
    assert response.status_code == 403
    assert "The form has expired" in response.content.decode()


@pytest.mark.django_db
def test_a_fault_of_ours_has_a_page_that_needs_nothing(client):
    assert "It is not your fault" in get_template("500.html").render()
    with translation.override("ja"):
        page = get_template("500.html").render()
    assert '<html lang="ja">' in page
    assert 'href="/"' in page


def test_a_request_to_another_host_is_refused_in_words(client):
    response = client.get(
        "/", headers={"host": "other.example", "accept-language": "ja"}
    )
    assert response.status_code == 400
    assert "要求を読み取れませんでした" in response.content.decode()


@pytest.mark.django_db
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


def test_a_column_of_a_table_is_written_once():
    table = Template(
        "{% load components %}{% listing name, tries in rows label='Webhooks' %}"
        "{% column 'Name' header class=tries|yesno:'tried,' %}{{ name }}{% endcolumn %}"
        "{% if shows %}{% column title number labelled %}{{ tries }}{% endcolumn %}{% endif %}"
        "{% endlisting %}"
    )
    context = {"rows": [("a<b", 2), ("c", "")], "title": '"Tries"', "shows": True}
    shown = re.sub(r"\n\s*", "", table.render(Context(context)))
    title = "&quot;Tries&quot;"
    assert (
        f'<th scope="col">Name</th><th scope="col" class="is-number">{title}</th>'
        in shown
    )
    cell = f'<td class="is-number" data-label="{title}">2</td>'
    assert f'<tr><th scope="row" class="tried">a&lt;b</th>{cell}</tr>' in shown
    assert (
        '<tr><th scope="row">c</th><td class="is-number is-none">–</td></tr>' in shown
    )
    assert "Tries" not in table.render(Context(context | {"shows": False}))


# A report is one file that opens offline; it is no page of the site.
PAGES = [template for template in TEMPLATES if template.parent.name != "reports"]


@pytest.mark.django_db
@over(PAGES)
def test_no_template_has_inline_script_or_style(template: Path):
    text = template.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|<style", text)


@pytest.mark.django_db
def test_every_text_of_code_and_templates_is_translated_into_japanese():
    assert len(texts.in_code_and_templates()) > 2000
    assert texts.untranslated(JAPANESE) == []


@pytest.mark.django_db
def test_a_text_that_is_new_is_found_untranslated(tmp_path):
    code = tmp_path / "new.py"
    code.write_text(
        'from x import ngettext\nsaid = _("A new " "text"), ngettext("one", "%d", 2)\n'
    )
    page = '{% load i18n %}\n{% translate "Other" %}'
    page += '{% blocktranslate %}Says "it"{% endblocktranslate %}'

    assert list(texts.of_python(code)) == [(2, ("", "A new text")), (2, ("", "one"))]
    assert list(texts.of_template(page)) == [(2, ("", "Other")), (2, ("", 'Says "it"'))]


@pytest.mark.django_db
def test_a_catalogue_without_a_text_is_noticed(tmp_path):
    whole = JAPANESE.read_text()
    first = next(re.finditer(r'\nmsgid "([A-Z][a-z ]+)"\nmsgstr "[^"]+"\n', whole))
    short = tmp_path / "django.po"
    short.write_text(whole.replace(first[0], "\n"))

    assert [line for line in texts.untranslated(short) if repr(first[1]) in line]


PART = r"""{%\s*partialdef ([\w-]+)( inline)? %}(.*?){%\s*endpartialdef \1 %}"""


def test_every_part_of_a_template_is_shown_somewhere_and_each_that_is_named_exists():
    root = settings.BASE_DIR
    sources = {
        path.relative_to(root / "templates"): path.read_text() for path in TEMPLATES
    }
    parts = {
        f"{name}#{each[1]}": bool(each[2])
        for name, text in sources.items()
        for each in re.finditer(PART, text, re.DOTALL)
    }
    named = {
        f"{name}#{each}"
        for name, text in sources.items()
        for each in re.findall(r"{%\s*partial ([\w-]+) %}", text)
    }
    code = [path.read_text() for path in sorted((root / "runs").rglob("*.py"))]
    for text in [*sources.values(), *code]:
        named |= set(re.findall(r"""["']([\w/-]+\.html#[\w-]+)["']""", text))

    assert len(parts) > 60
    assert named - set(parts) == set()
    assert [
        part for part, is_inline in parts.items() if part not in named and not is_inline
    ] == []


@pytest.mark.django_db
def test_every_page_whose_parts_ask_again_loads_the_script_that_asks():
    """Without it a part with `hx-get` stands still for ever, and nothing says so."""
    folder = settings.BASE_DIR / "templates"
    sources = {str(each.relative_to(folder)): each.read_text() for each in TEMPLATES}
    for name, text in list(sources.items()):
        sources |= {
            f"{name}#{each[1]}": each[3] for each in re.finditer(PART, text, re.DOTALL)
        }
        # What is shown elsewhere, too, stays where it is shown.
        sources[name] = re.sub(
            PART, lambda each: each[3] if each[2] else "", text, flags=re.DOTALL
        )

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


# The first page.


@pytest.mark.django_db
def test_an_empty_lab_says_what_to_do(client):
    page = client.get("/").content.decode()
    assert "No servers yet" in page
    assert "/servers/new/" in page
    assert "/campaigns/new/" in page


@pytest.mark.django_db
def test_it_shows_what_runs_now_and_asks_again(client, ready_server):
    campaign = factories.campaign("live", title="Live one", on=ready_server)
    campaign.runs.filter(position=1).update(state=Run.State.MEASURING)
    page = client.get("/").content.decode()
    assert "Live one" in page
    assert 'hx-trigger="every 2s"' in page


@pytest.mark.django_db
def test_an_idle_lab_is_not_polled(client, finished_campaign):
    assert "hx-trigger" not in client.get("/").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/", "/runs/{run}/"])
def test_a_poll_without_news_is_answered_by_nothing(client, finished_campaign, address):
    run = factories.run(finished_campaign.cells.first(), repeat=9, state="measuring")
    path, htmx = address.format(run=run.pk), {"HX-Request": "true"}
    first = client.get(path, headers=htmx)
    seen = first["X-Stamp"]

    again = client.get(path, headers=htmx | {"X-Stamp": seen})
    run.state = "collecting"
    run.save()
    changed = client.get(path, headers=htmx | {"X-Stamp": seen})

    assert (again.status_code, again.content) == (204, b"")
    assert changed.status_code == 200
    assert changed["X-Stamp"] != seen
    assert b"csrfmiddlewaretoken" not in first.content, (
        "it would be another one each time"
    )


@pytest.mark.django_db
def test_htmx_gets_the_live_part_only(client, finished_campaign):
    response = client.get("/", headers={"HX-Request": "true"})
    assert "<html" not in response.content.decode()
    assert "PostgreSQL 16 and 18" in response.content.decode()
    assert "HX-Request" in response["Vary"]


@pytest.mark.django_db
def test_its_queries_do_not_grow_with_the_campaigns(
    client, ready_server, django_assert_max_num_queries
):
    for number in range(5):
        factories.campaign(f"campaign-{number}", on=ready_server)
    Campaign.objects.update(state="queued")
    with django_assert_max_num_queries(15):
        client.get("/")


@pytest.mark.django_db
def test_its_queries_do_not_grow_with_what_finished(
    client, ready_server, django_assert_max_num_queries
):
    for number in range(5):
        campaign = factories.campaign(
            f"lab-{number}", on=ready_server, parameters={"duration": 60}
        )
        factories.finish_all(campaign, gain={"18.4": 1 + number / 10})
    with django_assert_max_num_queries(28):
        page = client.get("/").content.decode()
    assert page.count("lab-4") > 2


@pytest.mark.django_db
def test_a_campaign_in_the_list_says_what_its_own_page_says(client, ready_server):
    """The first page judges the newest campaigns together, a campaign's own page each alone."""
    many = {"version": ["12.22", "14.19", "16.14", "17.6", "18.4"], "clients": [1, 2]}
    for number, (gain, factors) in enumerate(((0.8, None), (1.0, many), (1.3, None))):
        campaign = factories.campaign(f"lab-{number}", on=ready_server, factors=factors)
        factories.finish_all(campaign, gain={"18.4": gain, "14.19": 0.9})
    newest = client.get("/").content.decode().split('id="newest"')[1]
    sentences = dict(
        re.findall(
            r'href="(/campaigns/lab-\d/)".*?breakable">(.*?)</span>', newest, re.DOTALL
        )
    )
    assert len(sentences) == 3
    for address, sentence in sentences.items():
        assert sentence.strip() in client.get(address).content.decode()


# The headers of every answer, and how many answers there are.


TEMPLATES_FOLDER = Path(__file__).parents[2] / "templates"
# A report is a self-contained file, which a browser opens without BenchLab.
STANDALONE = {"reports/report.html"}
INLINE = re.compile(
    r"<style\b|<script(?![^>]*\bsrc=)|\son\w+\s*=\s*[\"']|javascript:", re.IGNORECASE
)


def policy(response) -> dict[str, str]:
    text = response.headers["Content-Security-Policy"]
    return dict(part.strip().split(" ", 1) for part in text.split(";"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/", "/login/", "/servers/", "/no-such/", "/api/v1/campaigns/"]
)
def test_no_page_may_run_what_stands_in_it(client, path):
    told = policy(client.get(path))
    assert told["default-src"] == "'none'"
    assert told["script-src"] == "'self'"
    assert "unsafe" not in told["style-src"]
    assert told["frame-ancestors"] == "'none'"
    assert told["base-uri"] == "'none'"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("issuer", "told"),
    [
        ("", "'self'"),
        ("https://idp.example/realms/lab", "'self' https://idp.example"),
        ("http://127.0.0.1:8180/x", "'self' http://127.0.0.1:8180"),
        ("https://idp.example; script-src *", "'self'"),
        ("javascript:alert(1)", "'self'"),
    ],
)
def test_forms_lead_to_benchlab_and_to_the_provider_of_logins_only(
    settings, issuer, told
):
    settings.OPENID_ISSUER = issuer
    assert middleware.build_page_policy()["form-action"] == told


@pytest.mark.django_db
def test_only_the_documentation_of_the_api_may_have_styles_in_it(client):
    told = policy(client.get("/api/docs/"))
    assert told["script-src"] == middleware.POLICY["script-src"]
    assert "'unsafe-inline'" in told["style-src"]


@pytest.mark.django_db
def test_no_template_has_a_script_or_style_within_it():
    found = [
        f"{path.relative_to(TEMPLATES_FOLDER)}: {match[0]}"
        for path in sorted(TEMPLATES_FOLDER.rglob("*.html"))
        if str(path.relative_to(TEMPLATES_FOLDER)) not in STANDALONE
        for match in INLINE.finditer(path.read_text())
    ]
    assert found == []


@pytest.mark.django_db
def test_nobody_keeps_what_was_asked_for_with_a_login(client):
    assert "Cache-Control" not in client.get("/servers/").headers
    client.force_login(User.objects.create_user("reader"))
    for path in ("/", "/servers/", "/tokens/", "/api/v1/campaigns/"):
        assert "no-store" in client.get(path).headers["Cache-Control"], path


@pytest.mark.django_db
def test_nobody_keeps_what_was_asked_for_with_a_token(client):
    response = client.get(
        "/api/v1/campaigns/", headers={"Authorization": "Bearer wrong"}
    )
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.django_db
def test_too_many_pages_are_refused_with_the_time_to_wait(
    client, settings, monkeypatch
):
    settings.RATE_ANONYMOUS = 2
    monkeypatch.setattr(rate_limit.time, "time", lambda: 1_800_000_030.0)
    # Of an address that no other test has.
    answers = [client.get("/login/", REMOTE_ADDR="192.0.2.77") for _each in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[2].headers["Retry-After"] == "30"
    assert client.get("/healthz/", REMOTE_ADDR="192.0.2.77").status_code == 200


@pytest.mark.django_db
def test_a_request_that_stops_in_the_middle_is_at_its_end(monkeypatch):
    monkeypatch.setattr(gunicorn, "SILENCE_SECONDS", 0.1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"half")
        reading = ImpatientSocket(ours)
        assert reading.recv(100) == b"half"
        assert reading.recv(100) == b""
        with pytest.raises(BrokenPipeError):
            theirs.sendall(b"the other half")
        assert reading.recv(100) == b""


@pytest.mark.django_db
def test_a_request_that_drips_is_at_its_end(monkeypatch):
    monkeypatch.setattr(gunicorn, "SILENCE_SECONDS", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reading, received = ImpatientSocket(ours), 0
        while received < 50:
            theirs.send(b"x")
            if not reading.recv(1):
                break
            received += 1
            time.sleep(0.02)
    assert 0 < received < 50


@pytest.mark.django_db
def test_a_large_request_has_the_time_that_it_needs(monkeypatch):
    monkeypatch.setattr(gunicorn, "SILENCE_SECONDS", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reading = ImpatientSocket(ours)
        before = reading._deadline
        theirs.sendall(bytes(100_000))
        assert sum(len(reading.recv(50_000)) for _each in range(2)) == 100_000
        assert reading._deadline - before == pytest.approx(
            100_000 / gunicorn.BYTES_PER_SECOND
        )


@pytest.mark.django_db
def test_long_texts_are_packed_and_no_length_tells_a_secret(client, db):
    for number in range(30):
        factories.campaign(
            f"number-{number}", factors={"version": ["16.14"]}, repeats=1
        )
    taken = {"Accept-Encoding": "gzip"}
    for path in ("/campaigns/", "/api/v1/campaigns/", "/api/v1/campaigns/?format=csv"):
        plain, packed = client.get(path), client.get(path, headers=taken)
        assert "Content-Encoding" not in plain.headers
        assert "Accept-Encoding" in plain.headers["Vary"]
        assert packed.headers["Content-Encoding"] == "gzip"
        sent = b"".join(packed) if packed.streaming else packed.content
        expected = b"".join(plain) if plain.streaming else plain.content
        assert len(gzip.decompress(sent)) == len(expected)
        assert 3 * len(sent) < len(expected)

    lengths = {len(client.get("/login/", headers=taken).content) for _each in range(20)}
    assert len(lengths) > 5
    for path in ("/healthz/", "/campaigns/number-1/badge.svg"):
        assert "Content-Encoding" not in client.get(path, headers=taken).headers


# How numbers, times and texts are written.


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0"),
        (12345.6, "12,346"),
        (987.64, "987.6"),
        (12.346, "12.35"),
        (0.12346, "0.1235"),
        (0.5, "0.5"),
        (0.99996, "1"),
        (0.000012346, "0.0000123"),
        (3.1e-7, "3.1e-07"),
        (4, "4"),
    ],
)
def test_a_quantity_has_the_digits_that_say_something(value, text):
    assert formats.quantity(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (-3, "0.0 s"),
        (4.24, "4.2 s"),
        (59, "59 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (timedelta(days=1, hours=2), "1 day 2 h"),
        (3 * 86400, "3 days 0 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, text):
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "–"), (512, "512 B"), (8 * 2**30, "8 GiB"), (3 * 2**41, "6 TiB")],
)
def test_bytes_are_counted_in_binary_units(size, text):
    assert formats.bytesize(size) == text


def test_a_ratio_of_any_size_can_be_read():
    assert [formats.factor(each) for each in (4415.9, 0.983, 0.0123, 6.84e-05)] == [
        "4,420",
        "0.983",
        "0.0123",
        "1/14,600",
    ]


def test_a_ratio_is_also_a_change():
    assert (formats.ratio(1.0826), formats.change(1.0826)) == ("1.083", "+8.3 %")
    assert (formats.ratio(None), formats.change(None)) == ("–", "–")


def test_a_short_text_stays_whole():
    assert formats.capped("short", 10) == "short"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("2.2", "Table 2.2"),
        ("図 3.7", "Figure 3.7"),
        ("9.4.2", "Section 9.4.2"),
        ("3.1.2-1", "Section 3.1.2 (1)"),
        ("flame-graph", "flame-graph"),
    ],
)
def test_a_place_of_a_publication_is_a_table_a_figure_or_a_section(number, text):
    assert formats.place(number) == text


def test_what_is_not_printed_is_unknown():
    assert (formats.repeats(None), formats.repeats(3)) == ("n unknown", "n = 3")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(["read", "upload"], "read, upload"), ([], None), ("read", "read")],
)
def test_several_values_are_one_line(value, shown):
    assert formats.listed(value) == shown
