"""Hostile values through every field of forms, API and import: none is executed, none rendered.

Each value that HTML could render makes an element or attribute `data-inj`; each that a shell could
execute makes a file; each that SQL could execute makes a table; each that a template could compute
says 9801547.
"""

import csv
import io
import json
import re
from functools import partial
from html.parser import HTMLParser

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import resolve

from runs.access.services import projects, tokens
from runs.execution.plan import WorkloadContent
from runs.execution.reporter import ArtifactData
from runs.models import (
    Annotation,
    Campaign,
    Change,
    Edition,
    Measurement,
    Observation,
    Run,
    SavedComparison,
    Scenario,
)
from runs.tools.pgbench.scripts import GivenScript
from runs.workloads.services import workloads
from tests import factories
from tests.api.upload_bodies import run as upload
from tests.rights import ADDRESSES

pytestmark = pytest.mark.django_db

ELEMENTS = (
    "script",
    "img src=x",
    "svg",
    "iframe",
    "object",
    "style",
    "link",
    "base",
    "math",
    "a",
)
HTML = (
    *(f"<{each} data-inj>" for each in ELEMENTS),
    *(f'"><{each} data-inj>' for each in ELEMENTS[:6]),
    *(f"'><{each} data-inj>" for each in ELEMENTS[:6]),
    "</title><b data-inj>",
    "</textarea><b data-inj>",
    "</script><b data-inj>",
    "--><b data-inj>",
    "]]><b data-inj>",
    "</option></select><b data-inj>",
    '" data-inj="',
    "' data-inj='",
    "x data-inj=1 ",
    '" autofocus onfocus="x" data-inj="',
    "&lt;b data-inj&gt;",
    "&#60;b data-inj&#62;",
    "%3Cb data-inj%3E",
    r"\u003cb data-inj\u003e",
    "<b\tdata-inj>",
    "<b/data-inj>",
    "<b data-inj",
    "＜b data-inj＞",
    "<<b data-inj>>",
    "javascript:data-inj",
    "JaVaScRiPt:data-inj",
    "data:text/html,<b data-inj>",
    "vbscript:x",
)
SHELL = (
    "$(: >{0})",
    "`: >{0}`",
    ";: >{0}",
    "|: >{0}",
    "&: >{0}",
    "&&: >{0}",
    "||: >{0}",
    "';: >{0};'",
    '";: >{0};"',
    "\\';: >{0}",
    "$'\\x3b: >{0}'",
    "${{x:=$(: >{0})}}",
    "\n: >{0}\n",
    "\r\n: >{0}",
    "x'\n: >{0}\n'",
    ">{0}",
    "<(: >{0})",
    "#\n: >{0}",
    "\\!: >{0}",
    "a\n\\! : >{0}",
    "COPY t TO PROGRAM ': >{0}'",
)
SQL = (
    "'; CREATE TABLE inj(); --",
    '"; CREATE TABLE inj(); --',
    "); CREATE TABLE inj(); --",
    "' OR 1=1 --",
    "' UNION SELECT 1 --",
    "%' OR '1'='1",
    "1; CREATE TABLE inj()",
    "\\'; --",
    "'||(SELECT 1)||'",
    "$$; CREATE TABLE inj(); $$",
    "1 OR 1=1",
    "%",
    "_",
    "%s",
    "%(x)s",
    "';COPY (SELECT 1) TO PROGRAM 'x",
    "/**/OR/**/1=1",
    "E'\\047 OR 1=1",
)
PATHS = (
    "../../../../etc/passwd",
    "/etc/passwd",
    "..\\..\\x",
    "....//....//x",
    "%2e%2e%2fx",
    "~root",
    "file:///etc/passwd",
    "..;/x",
    "/proc/self/environ",
    "a/../../x",
    "//host/share",
    "C:\\x",
)
HEADERS = (
    "x\r\nX-Inj: 1",
    "x\nX-Inj: 1",
    "x\rX-Inj: 1",
    "x\u2028X-Inj: 1",
    "x%0d%0aX-Inj: 1",
    'x"; filename="y.html',
    "x\r\n\r\n<b data-inj>",
    "x\x0bX-Inj: 1",
    "x\x85X-Inj: 1",
)
FORMULAS = (
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "=cmd|'/c x'!A1",
    '=HYPERLINK("http://x")',
    "=IMPORTXML(1)",
    '"=1+1',
    "＝1+1",
    "=1+1;2",
)
TEMPLATES = (
    "{{ 1337*7331 }}",
    "{{1337*7331}}",
    "{% debug %}",
    "{% load x %}",
    "${1337*7331}",
    "#{1337*7331}",
    "<%= 1337*7331 %>",
    "{{ settings.SECRET_KEY }}",
    "{{ request }}",
    "%(SECRET_KEY)s",
    "{0.__class__}",
    "{SECRET_KEY}",
    "{{''.__class__}}",
    "{% csrf_token %}",
)


@pytest.fixture
def values(tmp_path):
    """All of them."""
    folder = tmp_path / "inj"
    folder.mkdir()
    shell = tuple(each.format(folder / "x") for each in SHELL)
    found = (*HTML, *shell, *SQL, *PATHS, *HEADERS, *FORMULAS, *TEMPLATES)
    assert len(set(found)) >= 120
    return found


class Page(HTMLParser):
    """What a browser would make of a page: what was injected, and the forms with their fields."""

    def __init__(self, text):
        super().__init__()
        self.injected, self.forms, self.script = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        address = str(given.get("href") or given.get("src") or "").strip().lower()
        if "data-inj" in given or any(name.startswith("on") for name in given):
            self.injected.append((tag, attrs))
        if address.startswith(("javascript:", "vbscript:", "data:text")):
            self.injected.append((tag, address))
        if tag == "form":
            self.forms.append(
                (given.get("action") or "", given.get("method") or "get", [])
            )
        elif (
            tag in {"input", "textarea", "select"} and self.forms and given.get("name")
        ):
            kind = given.get("type", "text") if tag == "input" else tag
            self.forms[-1][2].append([given["name"], kind, given.get("value") or ""])
        elif tag == "option" and self.forms and self.forms[-1][2]:
            field = self.forms[-1][2][-1]
            field[2] = field[2] or given.get("value") or ""


TEXT = frozenset(
    {"text", "search", "url", "email", "textarea", "password", "datetime-local"}
)


def forms(client, address):
    """(address, method, fields) of the forms of a page that take text."""
    page = client.get(address, follow=True)
    assert page.status_code == 200, address
    for action, method, fields in Page(page.content.decode()).forms:
        if any(kind in TEXT for _name, kind, _value in fields):
            yield action or address, method.lower(), fields


def filled(fields, value):
    """The fields of a form, with the value in each that takes text."""
    return {
        name: value if kind in TEXT else given
        for name, kind, given in fields
        if name != "csrfmiddlewaretoken" and kind != "checkbox"
    }


def check(answer):
    """Nothing of what came was rendered; no answer is an error of the server."""
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    text = content.decode("utf-8", "replace")
    assert answer.status_code < 500, text[:2000]
    assert not any("X-Inj" in name for name in answer.headers)
    assert "9801547" not in text
    if answer.headers.get("Content-Type", "").startswith("text/html"):
        assert Page(text).injected == []
    return text


def executed(tmp_path):
    """What a shell or SQL would have made."""
    tables = [name for name in connection.introspection.table_names() if name == "inj"]
    return [*(tmp_path / "inj").iterdir(), *tables]


@pytest.fixture
def everything(ready_server, known, monkeypatch, settings, client, django_user_model):
    """An administrator, and one of each thing that pages show."""
    settings.RATE_ANONYMOUS = settings.RATE_TOKEN = 0
    client.force_login(
        django_user_model.objects.create_superuser("hanako", password="x")
    )
    campaign = factories.campaign("one", on=ready_server, project=projects.default())
    factories.finish_all(campaign)
    yield campaign
    cache.clear()  # django-allauth counts logins that fail, and would refuse those of other tests


# Forms without a text of their own: buttons, choices and numbers, or the text of a form that is met
# (`campaign-preflight`), and what accepts its own kind of text only (a host key, a date).
WITHOUT_TEXT = re.compile(
    r"annotation-delete|.*-(cancel|pause|resume|retry|rounds|priority|restore|remove|revoke|ping|role"
    r"|switch|delete|inspect|preflight|release|confirm|accept|take-back|await|separate|join|measure"
    r"|dump|try)"
    r"|campaign-watch|logout|take-over"
    r"|configuration-check|compare-why|server-replace-host-key|set_language"
)
# Of django-allauth; who is asked for a code, or to add a key, has to have more than a password.
OF_ACCOUNTS = ("mfa_", "socialaccount_", "openid_", "usersessions_", "account_")


@pytest.fixture
def shown(everything, known):
    """What forms that change something need, beside `everything`."""
    factories.configuration("own", name="Own")
    factories.own_metric(projects.default(), "own")
    script = GivenScript("a", "SELECT 1;")
    workloads.create(
        name="Own", description="", content=WorkloadContent(scripts=(script,))
    )
    Annotation.objects.create(campaign=everything, text="A note.")
    run = everything.runs.first()
    told = {"kind": "step", "ratio": 1, "before": 1, "after": 1}
    Change.objects.create(cell=run.cell, run=run, metric=factories.metric(), **told)
    observation = Observation.objects.create(
        slug="own", title="Own", server=run.server, designs=[], anchor="16"
    )
    Edition.objects.create(observation=observation, label="2026").campaigns.add(
        everything
    )
    return everything


def pages(campaign):
    """Where forms are."""
    run, server = campaign.runs.first(), campaign.runs.first().server
    return (
        "/configurations/own/edit/",
        "/workloads/own/edit/",
        "/bisections/new/",
        f"/campaigns/{campaign.slug}/schedule/",
        "/accounts/email/",
        "/accounts/password/change/",
        "/projects/",
        "/projects/default/people/",
        "/tokens/",
        "/webhooks/",
        "/audit/",
        "/projects/default/metrics/own/",
        "/configurations/new/",
        "/configurations/",
        "/configurations/diff/",
        "/workloads/new/",
        "/loads/new/",
        "/servers/keys/",
        "/servers/new/",
        f"/servers/{server.slug}/",
        "/plans/",
        "/compare/",
        f"/servers/{server.slug}/edit/",
        f"/campaigns/{campaign.slug}/",
        f"/runs/{run.pk}/",
        "/hardware/",
        "/archive/",
        "/campaigns/new/?scenario=fixed-point-read",
        "/campaigns/",
        "/uploads/new/",
        "/observations/new/",
        "/observations/own/",
    )


# Each form and each import meets some of the values, and `script/test --all` all of them.
SHARES = (48, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(900)]))


@pytest.mark.parametrize("share", SHARES)
def test_no_value_in_any_field_of_a_form_is_executed_or_rendered(
    client, shown, values, tmp_path, share
):
    found = {}
    for address in pages(shown):
        for action, method, fields in forms(client, address):
            found[
                action.partition("?")[0], method, tuple(name for name, *_ in fields)
            ] = fields
    met = {
        resolve(action).view_name
        for action, method, _names in found
        if method == "post"
    }
    changing = {name for name, rules in ADDRESSES.items() if "POST" in rules}
    assert {
        name
        for name in changing - met - others(shown).keys()
        if not name.startswith(("api:", *OF_ACCOUNTS))
        and not WITHOUT_TEXT.fullmatch(name)
    } == set(), "forms that no value meets"
    for number, ((action, method, _names), fields) in enumerate(found.items()):
        send = client.post if method == "post" else client.get
        for value in values[number % share :: share]:
            check(send(action, filled(fields, value)))
    for address in pages(shown):
        check(client.get(address, follow=True))

    assert executed(tmp_path) == []


def others(campaign):
    """Forms with text that stand on no page as it is at first: (address, fields with `VALUE`)."""
    run, decision = (
        campaign.runs.last(),
        f"/changes/{Change.objects.first().pk}/decision/",
    )
    compared = {"query": "s=one&x=VALUE", "title": "VALUE", "note": "VALUE"}
    return {
        "compare-save": ("/compare/save/", compared),
        "change-decide": (decision, {"decision": "confirmed", "note": "VALUE"}),
        "run-withdraw": (f"/runs/{run.pk}/withdraw/", {"reason": "VALUE"}),
        "login": ("/login/", {"login": "VALUE", "password": "VALUE"}),
        "account_login": ("/accounts/login/", {"login": "VALUE", "password": "VALUE"}),
        "account_reset_password": ("/accounts/password/reset/", {"email": "VALUE"}),
    }


@pytest.mark.parametrize("share", SHARES)
def test_no_value_in_a_form_that_comes_up_later_is_executed_or_rendered(
    client, shown, values, tmp_path, share
):
    visitor = Client()
    for place, (name, (address, fields)) in enumerate(others(shown).items()):
        browser = visitor if name in {"login", "account_login"} else client
        for value in values[place % share :: share]:
            given = {
                each: text.replace("VALUE", value) for each, text in fields.items()
            }
            check(browser.post(address, given))
            check(client.get(address, follow=True))
            run = shown.runs.last()
            check(
                client.post(
                    f"/runs/{run.pk}/restore/", {"reason": "To try another one."}
                )
            )
    for address in ("/compare/saved/", "/changes/", "/audit/"):
        check(client.get(address))
    assert SavedComparison.objects.exists()
    assert Change.objects.exclude(note="").exists()
    assert executed(tmp_path) == []


def hostile(value, number):
    """An upload with the value wherever text is free."""
    return upload(
        campaign=f"inj-{number}",
        campaign_title=value[:200],
        levels={"clients": 1, "hostile": value[:100]},
        labels={"hostile": value[:200], "job_url": value[:200]},
        external_id=value[:200],
        hardware={
            "name": value[:200],
            "cpu_model": value[:200],
            "facts": {"text": value},
        },
        environment={"os_name": value[:200], "kernel": value[:200]},
        postgresql={"version": "18.1", "settings": {"application_name": value}},
        tool={"name": value[:40], "version": value[:40]},
        revision={"sha": f"{number:040x}", "ref": value[:200]},
    )


@pytest.mark.parametrize("share", SHARES)
def test_no_value_in_any_field_of_the_api_is_executed_or_rendered(
    client, everything, values, tmp_path, share
):
    token = tokens.create(
        name="t", scopes=["admin"], project=projects.default(), expires_at=None
    ).text
    header = {"Authorization": f"Bearer {token}"}

    def post(path, body):
        return client.post(
            f"/api/v1/{path}", json.dumps(body), "application/json", headers=header
        )

    stored = []
    for number, value in enumerate(values):
        answer = post("uploads/", hostile(value, number))
        check(answer)
        assert answer.status_code in {201, 400}, answer.content
        if answer.status_code == 201:
            stored.append(Run.objects.get(pk=answer.json()["id"]))
        if number % share:
            continue
        for name in ("campaign", "scenario", "started_at", "status", "server")[
            number % 2 :: 2
        ]:
            refused = post("uploads/", upload(**{name: value}))
            check(refused)
            is_name = name in {"campaign", "scenario"} and re.fullmatch(
                r"[-\w]+", value
            )
            assert (refused.status_code >= 400) != bool(is_name), (name, value)
        check(post("campaigns/one/annotations/", {"text": value, "kind": "note"}))
        check(post("configurations/", {"name": value, "settings": {"work_mem": value}}))
        for path in (
            "runs/?campaign=",
            "measurements/?metric=",
            "audit/?actor=",
            "compare/?base=",
        ):
            check(client.get(f"/api/v1/{path}", {path.partition("?")[2][:-1]: value}))
    assert len(stored) >= 60, "most values are texts like others"
    check_pages(client, stored, step=1 if share == 1 else 6)
    check_csv(client)
    assert executed(tmp_path) == []
    assert Measurement.objects.exists()


def check_pages(client, stored, step):
    """Where uploaded texts are shown; pages of one run each for every so-manieth."""
    for run in stored[::step]:
        check(client.get(f"/runs/{run.pk}/"))
    for path in ("/campaigns/", "/hardware/", "/", "/api/v1/projects/default/export/"):
        check(client.get(path))
    for run in stored[:: 6 * step]:
        slug = run.campaign.slug
        for path in (
            f"/campaigns/{slug}/",
            f"/campaigns/{slug}/history/",
            f"/api/v1/runs/{run.pk}/",
        ):
            check(client.get(path))
        report = check(client.get(f"/campaigns/{slug}/report/"))
        assert "data-inj>" not in report


def _lines(text):
    return io.StringIO(text, newline="")


def check_csv(client):
    """No cell is a formula, in any file that a spreadsheet opens."""
    for path in ("runs", "measurements", "campaigns", "hardware"):
        rows = csv.reader(_lines(check(client.get(f"/api/v1/{path}/?format=csv"))))
        for cell in (cell for row in rows for cell in row):
            is_number = (
                cell.lstrip("-+")
                .replace(".", "")
                .replace("e", "")
                .replace("-", "")
                .isdigit()
            )
            assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), (
                cell
            )


def body_of(schema, parts, text_of):
    """A body as OpenAPI describes it; `text_of` gives the text of each field, by its name."""

    def of(schema, name):
        schema = {**schema, **next(iter(schema.get("allOf", ())), {})}
        if "$ref" in schema:
            return of(parts[schema["$ref"].rpartition("/")[2]], name)
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "string")
        if kind == "array":
            return [of(schema["items"], name)]
        if kind == "object":
            own = schema.get("properties") or {name: {}}
            return {each: of(described, each) for each, described in own.items()}
        plain = {
            "integer": max(1, schema.get("minimum", 1)),
            "number": 1.5,
            "boolean": True,
        }
        return plain.get(kind) or text_of(name)

    return of(schema, "")


def operations(client, campaign):
    """(address, method, function that makes a body) of each operation of the API that takes one."""
    described = client.get("/api/v1/schema/?format=json").json()
    run = campaign.runs.first()
    named = {"slug": campaign.slug, "campaign": campaign.slug, "id": str(run.pk)}
    for path, methods in described["paths"].items():
        for method in methods.keys() & {"post", "put", "patch"}:
            content = methods[method].get("requestBody", {}).get("content", {})
            if "application/json" in content:
                address = path.replace(
                    "projects/{slug}", "projects/default"
                ).format_map(named)
                schema, parts = (
                    content["application/json"]["schema"],
                    described["components"],
                )
                yield address, method, partial(body_of, schema, parts["schemas"])


@pytest.mark.parametrize("share", SHARES)
def test_no_value_in_any_described_field_of_the_api_is_executed_or_rendered(
    client, shown, values, tmp_path, share
):
    token = tokens.create(name="t", scopes=["admin"], project=projects.default()).text
    header = {"Authorization": f"Bearer {token}"}
    found = list(operations(client, shown))
    assert len(found) >= 15
    statuses = set()
    for place, (address, method, make) in enumerate(found):
        names = []
        make(lambda name, names=names: names.append(name) or "x")
        fields = sorted(set(names))
        for number, value in enumerate(values[place % share :: share]):
            # In all fields at once, and in one, as another one's fault would hide it.
            for one in (
                (None, *fields[number % len(fields) :][:1]) if fields else (None,)
            ):
                body = make(
                    lambda name, one=one, value=value: (
                        value if one in {None, name} else "x"
                    )
                )
                send = getattr(client, method)
                answer = send(
                    address, json.dumps(body), "application/json", headers=header
                )
                check(answer)
                statuses.add(answer.status_code)
    assert statuses & {200, 201}
    for address in (*pages(shown), "/schedules/"):
        check(client.get(address, follow=True))
    assert executed(tmp_path) == []


@pytest.mark.parametrize("share", SHARES)
def test_no_value_in_any_field_of_an_import_is_executed_or_rendered(
    client, everything, values, tmp_path, share
):
    for run in everything.runs.all()[:1]:
        factories.story(run)
        factories.artifact(run=run, data=ArtifactData("stdout", b"tps = 1\n"))
    lines = client.get("/api/v1/projects/default/export/")
    rows = [json.loads(line) for line in b"".join(lines.streaming_content).splitlines()]
    campaign = next(row for row in rows if row["type"] == "campaign")
    run = next(row for row in rows if row["type"] == "run" and row["artifacts"])
    outside = sorted(
        each for each in tmp_path.rglob("*") if "artifacts" not in each.parts
    )
    Campaign.objects.all().delete()
    texts = [
        (campaign, name) for name, value in campaign.items() if isinstance(value, str)
    ]
    texts += [(run, name) for name, value in run.items() if isinstance(value, str)]
    texts += [(run["artifacts"][0], name) for name in ("name", "media_type", "sha256")]

    for number, value in enumerate(values):
        # One field after another has the value; each value is met by some fields.
        for place, name in texts[number % (3 * share) :: 3 * share]:
            before, place[name] = place[name], value
            if (place, name) != (campaign, "type"):
                body = "".join(json.dumps(row) + "\n" for row in rows)
                path = "/api/v1/projects/default/import/"
                check(client.post(path, body, "application/x-ndjson"))
            place[name] = before
    for imported in Campaign.objects.all()[:100]:
        check(client.get(f"/campaigns/{imported.slug}/"))
    for imported in Run.objects.exclude(artifacts=None)[:100]:
        check(client.get(f"/runs/{imported.pk}/"))
        for name in imported.artifacts.values_list("name", flat=True):
            check(client.get(f"/runs/{imported.pk}/artifacts/{name}/"))

    assert executed(tmp_path) == []
    assert (
        sorted(e for e in tmp_path.rglob("*") if "artifacts" not in e.parts) == outside
    )
    assert Scenario.objects.exists()
