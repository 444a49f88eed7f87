"""Webhooks to chats: each product's receiver takes what is sent, as its documentation has it."""

import json
import re
from datetime import datetime

import pytest
from django.utils import timezone

from runs.histories.services import chat_messages, deliveries, webhooks
from runs.models import WebhookDelivery
from tests.api.receiver import Receiver

pytestmark = pytest.mark.django_db

HOSTILE = "<!channel> @all @here [pay](https://evil.example) *x* `y` & <b>"
ADDRESS = "https://lab.example/campaigns/nightly/history/?metric=tps#change-7"


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOW_PRIVATE = True
    with Receiver() as running:
        yield running


def report(
    *, sentence="Since 8de2: 7 % slower", lines=(), title="Nightly", url=ADDRESS
):
    return {
        "id": "6f1f",
        "event": "change.found",
        "at": timezone.now().isoformat(),
        "project": "default",
        "campaign": {"title": title, "url": "https://lab.example/campaigns/nightly/"},
        "sentence": sentence,
        "further_lines": list(lines),
        "lines": [sentence],
        "changes": [{"verdict": "slower", "url": url}],
    }


LONGEST = report(sentence=HOSTILE * 80, lines=[HOSTILE * 80] * 60, title=HOSTILE * 20)
REPORTS = [
    report(),
    report(lines=["“Drop the index”, Jane Doe", "and 3 more metrics: 8 to 17 %"]),
    report(sentence=HOSTILE, title=HOSTILE),
    report(url="/campaigns/nightly/history/"),
    LONGEST,
    {"event": "ping", "id": "1", "at": timezone.now().isoformat(), "project": "a"},
]


# What each product documents


def check_slack(body):
    """docs.slack.dev: Block Kit's blocks and composition objects."""
    assert set(body) == {"text", "blocks"}
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", body["text"])
    assert 1 <= len(body["blocks"]) <= 50
    assert len(json.dumps(body["blocks"], ensure_ascii=False)) < 13_000
    most = {"header": 150, "section": 3000}
    for block in body["blocks"]:
        if block["type"] == "actions":
            (button,) = block["elements"]
            assert button["type"] == "button"
            assert len(button["url"]) <= 3000
            assert button["url"].startswith("https://")
            assert len(button["text"]["text"]) <= 75
        else:
            text = block["text"]
            # Nothing in plain text calls anybody or is a link of another name.
            assert text["type"] == "plain_text"
            assert 1 <= len(text["text"]) <= most[block["type"]]


def check_teams(body):
    """learn.microsoft.com: a message with one Adaptive Card, 28 KB at most."""
    assert len(json.dumps(body).encode()) < 28 * 1024
    assert body["type"] == "message"
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["contentUrl"] is None
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    for block in card["body"]:
        # A TextBlock would read Markdown.
        assert block["type"] == "RichTextBlock"
        for run in block["inlines"]:
            assert run["type"] == "TextRun"
            assert run["text"]
    for action in card.get("actions", ()):
        assert set(action) == {"type", "title", "url"}
        assert action["type"] == "Action.OpenUrl"
        assert action["url"].startswith("https://")


def is_escaped(text):
    """Whether no name is called, and no bracket, star or backtick is without its backslash."""
    without_escapes = re.sub(r"\\.", "", text)
    calls = re.search(r"@(?!\u200b)", text)
    return not calls and not re.search(r"[*_`\[\]<>()]", without_escapes)


def check_mattermost(body):
    """docs.mattermost.com: message attachments; servers before 5.0 take 7,900 characters."""
    (attachment,) = body["attachments"]
    assert set(attachment) - {"title_link"} == {"fallback", "color", "title", "text"}
    assert re.fullmatch(r"#[0-9a-f]{6}", attachment["color"])
    assert len(json.dumps(body, ensure_ascii=False)) < 7900 + 2000
    assert all(is_escaped(attachment[name]) for name in ("fallback", "title", "text"))
    assert attachment.get("title_link", "https://").startswith("https://")


def check_discord(body):
    """discord.com/developers: an embed of 6,000 characters in all that calls nobody."""
    assert body["allowed_mentions"] == {"parse": []}
    (embed,) = body["embeds"]
    assert 1 <= len(embed["title"]) <= 256
    assert len(embed["description"]) <= 4096
    assert len(embed["title"]) + len(embed["description"]) <= 6000
    assert 0 <= embed["color"] <= 0xFFFFFF
    assert datetime.fromisoformat(embed["timestamp"]).tzinfo
    assert is_escaped(embed["description"])
    assert embed.get("url", "https://").startswith("https://")


CHECKS = {
    "slack": check_slack,
    "teams": check_teams,
    "mattermost": check_mattermost,
    "discord": check_discord,
}


def texts_of(value):
    """All texts in a message."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts_of(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts_of(inner)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("kind", CHECKS)
def test_a_chat_takes_every_report(kind):
    for case in REPORTS:
        CHECKS[kind](chat_messages.written(kind, case))


@pytest.mark.parametrize("kind", CHECKS)
def test_a_message_has_title_sentence_author_and_address(kind):
    said = report(lines=["“Drop the index”, Jane Doe"])

    texts = " ".join(texts_of(chat_messages.written(kind, said))).replace("\\", "")

    for words in ("Nightly", "Since 8de2: 7 % slower", "Jane Doe", ADDRESS):
        assert words in texts


@pytest.mark.parametrize("kind", CHECKS)
def test_what_is_left_out_is_counted(kind):
    said = report(lines=[f"metric {number}" for number in range(20)])

    texts = " ".join(texts_of(chat_messages.written(kind, said)))

    assert "13 more lines are on the page" in texts
    assert "metric 7" not in texts


@pytest.mark.parametrize("kind", CHECKS)
def test_a_receiver_gets_the_message_of_its_product(project, receiver, kind):
    hook = webhooks.create(project=project, url=receiver.url, kind=kind).webhook
    signed = webhooks.create(project=project, url=receiver.url).webhook
    webhooks.queue(
        event="campaign.finished",
        project_id=project.pk,
        content={"campaign": {"title": "夜間", "url": ADDRESS}},
    )
    for delivery in WebhookDelivery.objects.all():
        deliveries.deliver(delivery_id=delivery.pk)

    body_of = {
        delivery.webhook_id: json.loads(delivery.payload)
        for delivery in WebhookDelivery.objects.all()
    }
    sent = [json.loads(request.body) for request in receiver.requests]
    CHECKS[kind](body_of[hook.pk])
    assert body_of[hook.pk] in sent
    assert body_of[signed.pk]["event"] == "campaign.finished"
    assert any("夜間" in text for text in texts_of(body_of[hook.pk]))


def test_every_event_has_a_title():
    assert set(chat_messages.TITLES) == {webhooks.PING, *webhooks.EVENTS}


def test_every_kind_but_our_own_has_a_writer():
    kinds = {kind for kind, _label in webhooks.Webhook.Kind.choices}

    assert set(chat_messages.WRITERS) == kinds - {"signed"}
