"""What a webhook to a chat sends: a report in the shape that the chat's product documents.

Slack: a message of Block Kit. Microsoft Teams: an Adaptive Card, as the Workflows app takes it.
Mattermost: a message attachment. Discord: an embed. Names, commits and notes in a report are other
people's texts: they stand in fields that know no markup, or are escaped, so that none of them
calls everybody in a channel or leads elsewhere. The limits are those of the products'
documentation, and all texts together stay below the smallest (Mattermost before 5.0: 7,900
characters; Discord: 6,000 in all embeds).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.utils.translation import ngettext

from runs.models.changes import WebhookKind

# A header of Block Kit has 150 characters, a title of Discord 256.
MOST_OF_TITLE = 150
# Of each line, and how many of them; the address has the rest.
MOST_OF_LINE, MOST_LINES = 400, 8
# Slack's button takes an address of 3,000 characters, Discord's title one of 2,048.
MOST_OF_ADDRESS = 2000

TITLES = {
    "ping": _lazy("BenchLab reports to this channel"),
    "change.found": _lazy("Change: %(title)s"),
    "alarm.raised": _lazy("Alarm: %(title)s"),
    "change.refuted": _lazy("Not confirmed: %(title)s"),
    "upload.missing": _lazy("Uploads are missing: %(title)s"),
    "campaign.finished": _lazy("Finished: %(title)s"),
}
COLOURS = {"slower": "#b3261e", "faster": "#1b7f3b"}
OTHER_COLOUR = "#6b7078"
# Characters that Markdown, or the chats' own dialects of it, read as markup.
MARKUP = re.compile(r"[\\`*_~|#>\[\]()!<:-]")
NO_WIDTH = "\N{ZERO WIDTH SPACE}"


@dataclass(frozen=True)
class Message:
    """A report in words. `address` is empty where the site does not know its own."""

    title: str
    lines: list[str]
    address: str
    colour: str
    at: str


def message(report: Mapping[str, Any]) -> Message:
    """The words of a report, of bounded size."""
    campaign = report.get("campaign", {})
    title = str(TITLES[report["event"]])
    if campaign:
        title %= {"title": campaign["title"]}
    changes = report.get("changes", ())
    url = changes[0]["url"] if changes else campaign.get("url", "")
    is_usable = url.startswith(("http://", "https://")) and len(url) <= MOST_OF_ADDRESS
    return Message(
        title=_cut(title, MOST_OF_TITLE),
        lines=_bounded(_lines(report)),
        address=url if is_usable else "",
        colour=COLOURS.get(changes[0]["verdict"] if changes else "", OTHER_COLOUR),
        at=report["at"],
    )


def _lines(report: Mapping[str, Any]) -> list[str]:
    if "sentence" in report:
        return [report["sentence"], *report["further_lines"]]
    if report["event"] != "upload.missing":
        return [_("Project: %(project)s") % {"project": report["project"]}]
    last = report["last_upload_at"]
    if not last:
        return [_("No upload has come yet.")]
    moment = parse_datetime(last)
    return [
        _("The last upload came on %(moment)s (UTC).")
        % {"moment": date_format(moment, "Y-m-d H:i") if moment else last}
    ]


def _bounded(lines: list[str]) -> list[str]:
    shown_lines = [_cut(line, MOST_OF_LINE) for line in lines[:MOST_LINES] if line]
    number = len(lines) - MOST_LINES
    if number > 0:
        more = ngettext(
            "%(number)d more line is on the page.",
            "%(number)d more lines are on the page.",
            number,
        )
        shown_lines.append(more % {"number": number})
    return shown_lines


def _cut(text: str, most: int) -> str:
    """The text on one line, at its end a sign if it had more characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _escaped(text: str) -> str:
    """Text in which Markdown finds no markup, and no chat a name to call."""
    return MARKUP.sub(r"\\\g<0>", text).replace("@", f"@{NO_WIDTH}")


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def slack(words: Message) -> dict[str, Any]:
    """A message of Block Kit. `text` is what notifications show; Slack reads markup in it."""
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain(words.title)}]
    blocks += [{"type": "section", "text": _plain(line)} for line in words.lines]
    if words.address:
        button = {
            "type": "button",
            "text": _plain(_("Open in BenchLab")),
            "url": words.address,
        }
        blocks.append({"type": "actions", "elements": [button]})
    title = words.title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": title, "blocks": blocks}


def teams(words: Message) -> dict[str, Any]:
    """An Adaptive Card. A TextBlock reads Markdown, a TextRun of a RichTextBlock none."""
    title = {"type": "TextRun", "text": words.title, "weight": "Bolder"}
    lines = [{"type": "TextRun", "text": line} for line in words.lines]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "RichTextBlock", "inlines": [run]} for run in [title, *lines]
        ],
    }
    if words.address:
        card["actions"] = [
            {
                "type": "Action.OpenUrl",
                "title": _("Open in BenchLab"),
                "url": words.address,
            }
        ]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def mattermost(words: Message) -> dict[str, Any]:
    """A message attachment; its text is Markdown, and names in it would be called."""
    attachment = {
        "fallback": _escaped(words.title),
        "color": words.colour,
        "title": _escaped(words.title),
        "text": "\n\n".join(_escaped(line) for line in words.lines),
    }
    if words.address:
        attachment["title_link"] = words.address
    return {"attachments": [attachment]}


def discord(words: Message) -> dict[str, Any]:
    """An embed; nobody is called, whatever it says."""
    embed: dict[str, Any] = {
        "title": _cut(_escaped(words.title), 256),
        "description": _cut_lines([_escaped(line) for line in words.lines], 4096),
        "color": int(words.colour.removeprefix("#"), 16),
        "timestamp": words.at,
    }
    if words.address:
        embed["url"] = words.address
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _cut_lines(lines: list[str], most: int) -> str:
    """As many of the lines as there is room for."""
    text = ""
    for line in lines:
        if len(text) + 1 + len(line) > most:
            break
        text = f"{text}\n{line}" if text else line
    return text


WRITERS: dict[str, Callable[[Message], dict[str, Any]]] = {
    WebhookKind.SLACK: slack,
    WebhookKind.TEAMS: teams,
    WebhookKind.MATTERMOST: mattermost,
    WebhookKind.DISCORD: discord,
}


def written(kind: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is sent of a report to a webhook of this kind."""
    writer = WRITERS.get(kind)
    return writer(message(report)) if writer else report
