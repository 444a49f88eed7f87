"""The map of the site: its sections, and the places of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, User
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.access.selectors import permissions
from runs.shared.urls import path_if_there

Actor: TypeAlias = User | AnonymousUser


@dataclass(frozen=True)
class Place:
    """A page of a section.

    `words` begin the names of its addresses: `server` of `server-detail`. `needs_right` says
    that not all who have logged in may go there.
    """

    title: str | Promise
    address: str
    words: tuple[str, ...]
    needs_right: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the site; its first place is where its name leads."""

    title: str | Promise
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Link:
    """A section or a place as the menu shows it."""

    title: str | Promise
    url: str
    is_here: bool


SECTIONS = (
    Section(_("Answers"), (Place(_("Answers"), "home", ("home",)),)),
    Section(
        _("Topics"),
        (
            Place(_("All topics"), "topic-list", ("topic",)),
            Place(_("Versions"), "versions", ("versions",)),
            Place(_("Publications"), "archive", ("archive",)),
        ),
    ),
    Section(_("Changes"), (Place(_("Changes"), "change-list", ("change",)),)),
    Section(
        _("Measurements"),
        (
            Place(_("Campaigns"), "campaign-list", ("campaign", "bisection")),
            Place(_("Runs"), "run-list", ("run", "artifact")),
            Place(_("Observations"), "observation-list", ("observation",)),
            Place(_("Schedules"), "schedule-list", ("schedule",)),
            Place(_("Upload"), "upload-new", ("upload",), needs_right=True),
        ),
    ),
    Section(
        _("Lab"),
        (
            Place(_("Servers"), "server-list", ("server", "ssh", "preflight", "trial")),
            Place(_("Workers"), "worker-list", ("worker",), needs_right=True),
            Place(_("Scenarios"), "scenario-list", ("scenario",)),
            Place(_("Own scripts"), "workload-list", ("workload",)),
            Place(
                _("Configurations"), "configuration-list", ("configuration", "settings")
            ),
            Place(_("Hardware"), "hardware-list", ("hardware",)),
            Place(_("Topologies"), "topology-list", ("topology",)),
        ),
    ),
    Section(
        _("Tools"),
        (
            Place(_("Compare"), "compare", ("compare",)),
            Place(_("Query plans"), "plan-viewer", ("plan",)),
        ),
    ),
    Section(_("Help"), (Place(_("Help"), "help", ("help",)),)),
)


def sections(view_name: str, user: Actor) -> list[Link]:
    """The sections, with the one that this page is in."""
    word = view_name.partition("-")[0]
    return [
        Link(
            section.title,
            links[0].url,
            any(word in place.words for place in section.places),
        )
        for section in SECTIONS
        if (links := list(_links(section.places[:1], word, user)))
    ]


def places(view_name: str, user: Actor) -> list[Link]:
    """The places of the section that this page is in; none where it has one place only."""
    word = view_name.partition("-")[0]
    for section in SECTIONS:
        if len(section.places) > 1 and any(
            word in place.words for place in section.places
        ):
            return list(_links(section.places, word, user))
    return []


def _links(places: Sequence[Place], word: str, user: Actor) -> Iterator[Link]:
    """Those that somebody may go to and that have an address: a subject may have been taken out."""
    for place in places:
        if place.needs_right and not permissions.is_offered(user, place.address):
            continue
        url = path_if_there(place.address)
        if url:
            yield Link(place.title, url, word in place.words)
