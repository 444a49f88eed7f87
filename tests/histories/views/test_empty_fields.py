"""No sentence has a hole: each field that may be empty is empty in turn, through every door."""

import html
import json
import re

import pytest
from django.core import mail
from django.core.cache import cache
from django.db import models

from runs.histories.selectors import causes
from runs.histories.services import changes, mails, webhooks
from runs.models import (
    Campaign,
    Change,
    Metric,
    Project,
    Revision,
    Run,
    Scenario,
    WebhookDelivery,
)
from runs.models.changes import WebhookKind
from tests.history_points import history, sha, store

pytestmark = pytest.mark.django_db

MODELS = (Campaign, Change, Metric, Project, Revision, Run, Scenario)
PAGES = (
    "/",
    "/changes/",
    "/campaigns/",
    "/campaigns/nightly/",
    "/campaigns/nightly/history/",
)
GATES = (
    f"base=history:main&head=revision:{sha(46)}",
    f"base=revision:{sha(10)}&head=revision:{sha(46)}",
)
# What stands where a value was to be: brackets and quotation marks around nothing, two signs with
# nothing between them, a sign that begins a line, a colon before the end of a sentence.
HOLE = re.compile(
    r"\(\s*\)|“\s*”|「\s*」|（\s*）|《\s*》|: ?[.,;](?:\s|$)|[,;·]\s*[,;·]|\s[,;.](?:\s|$)"
    r"|^[,;:.·]|\bNone\b|\bNaN\b|%\(",
    re.MULTILINE,
)


BLOCKS = re.compile(
    r"</?(?:p|div|li|ul|ol|dl|dt|dd|t[rhd]|table|t?head|tbody|caption|h[1-6]|section|article|nav|aside"
    r"|form|fieldset|legend|label|button|select|option|input|br|summary|details|main)\b[^>]*>"
)


def optional_fields():
    """Texts that may be empty and values that may be missing, as the models say."""
    for model in MODELS:
        for field in model._meta.concrete_fields:
            if field.is_relation or field.primary_key:
                continue
            is_text = isinstance(field, models.CharField | models.TextField)
            if is_text and field.blank and not field.choices:
                yield pytest.param(model, field.name, "", id=_name(model, field))
            elif field.null:
                yield pytest.param(model, field.name, None, id=_name(model, field))


def _name(model, field):
    return f"{model.__name__}.{field.name}"


@pytest.fixture(scope="module")
def step(stored_throughout):
    """A step of a history that has all its fields."""

    def make():
        store(history([1000] * 40 + [800] * 20))
        Revision.objects.update(subject="Count pins", author="Jane", url="https://a.b/")
        changes.find(campaign_id=Campaign.objects.get().pk)

    stored_throughout(make)


@pytest.fixture
def told(settings, step, django_user_model):
    """A function that empties a field, and gives what each door says then."""
    settings.SENDS_MAIL = True
    settings.PUBLIC_URL = "https://lab.example/"
    project = Project.objects.get()
    project.members.add(django_user_model.objects.create_user("eve", "eve@example.org"))
    for kind in WebhookKind.values:
        webhooks.create(project=project, url=f"https://ci.example/{kind}", kind=kind)

    def ask(client, language, model, field, value):
        model.objects.update(**{field: value})
        cache.clear()
        mails.send()
        for cause in causes.find_causes(
            list(Change.objects.select_related(*mails.RELATED))
        ):
            webhooks.changed(cause=cause, campaign=Campaign.objects.get())
        texts = {
            f"mail {row.subject}": f"{row.subject}\n{row.body}" for row in mail.outbox
        }
        for row in WebhookDelivery.objects.all():
            texts[f"webhook {row.webhook.kind}"] = "\n".join(
                strings(json.loads(row.payload))
            )
        headers = {"Accept-Language": language}
        run = Run.objects.order_by("pk").last()
        for address in (*PAGES, f"/runs/{run.pk}/"):
            texts[address] = visible(client.get(address, headers=headers))
        for gate in GATES:
            comment = client.get(f"/api/v1/compare/?{gate}&format=md", headers=headers)
            texts[f"comment {gate}"] = comment.content.decode()
        answers = client.get(
            "/api/v1/history/?campaign=nightly", headers=headers
        ).json()
        texts["history"] = "\n".join(strings(answers["answer"]))
        texts["run"] = "\n".join(
            strings(
                client.get(f"/api/v1/runs/{run.pk}/", headers=headers).json()["message"]
            )
        )
        return texts

    return ask


def strings(document):
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for value in document.values():
            yield from strings(value)
    elif isinstance(document, list):
        for value in document:
            yield from strings(value)


def visible(response):
    page = response.content.decode().partition("<main")[2].partition("</main>")[0]
    page = re.sub(
        r"<(script|style|svg)\b.*?</\1>|<!--.*?-->", " ", page, flags=re.DOTALL
    )
    page = re.sub(BLOCKS, "\n", page.replace("\n", " "))
    lines = html.unescape(re.sub(r"<[^>]*>", "", page)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)


@pytest.mark.parametrize(("model", "field", "value"), list(optional_fields()))
@pytest.mark.parametrize("language", ["en", "ja"])
def test_nothing_that_is_said_has_a_hole(client, told, language, model, field, value):
    texts = told(client, language, model, field, value)

    assert len(texts) >= len(PAGES) + len(GATES)
    holes = {
        door: [text[max(0, hole.start() - 60) : hole.end() + 20] for hole in found]
        for door, text in texts.items()
        if (found := list(HOLE.finditer(text)))
    }
    assert holes == {}
