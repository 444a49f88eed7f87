"""Slices: whether a draft can be measured in turn, and what is wrong with that.

The clusters of all cells of a server are up at once then, so their memory is needed together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from django.utils.translation import gettext as _

from runs.analysis.designs import Expected
from runs.campaigns.services.campaign_limits import (
    LEAST_SLICES,
    LONGEST_SLICE_SECONDS,
    MOST_IN_TURN,
    MOST_SECONDS_IN_TURN,
    MOST_SLICES,
)
from runs.campaigns.services.designs import Design, Part, resolve
from runs.campaigns.services.drafts import Draft
from runs.cells.selectors import recorded_seconds
from runs.configurations.services.fitted_configurations import major_of
from runs.models import Server
from runs.postgresql_settings.effective import Effective
from runs.scenarios import arrangements, registry, slices
from runs.shared.errors import Problem


def problems(design: Design) -> Iterator[Problem]:
    """What prevents the slices that a draft asks for; empty if it asks for none. No query."""
    slice_s = design.draft.slice_seconds
    if slice_s is None:
        return
    if not 1 <= slice_s <= LONGEST_SLICE_SECONDS:
        message = _("A slice takes from 1 to %(most)d s.") % {
            "most": LONGEST_SLICE_SECONDS
        }
        yield _problem("out_of_range", message)
        return
    if not design.scenario.offers_slices:
        message = _("This scenario is measured in whole runs: its load is not steady.")
        yield _problem("no_slices", message)
    yield from _machine_problems(design)
    if all(len(server_part.cells) < 2 for server_part in design.parts):
        message = _("Slices take turns with those of another condition on the server.")
        yield _problem("slices_alone", message)
    yield from _length_problems(design, slice_s)
    for server_part in design.parts:
        yield from _memory_problems(server_part)


def _problem(code: str, message: str) -> Problem:
    return Problem(code, message, _("Choose whole runs."), "slice_seconds")


def _machine_problems(design: Design) -> Iterator[Problem]:
    draft = design.draft
    is_arranged = arrangements.NAME in draft.levels
    if draft.generators or draft.cluster_servers or is_arranged:
        message = _("Slices need clusters and load on one machine.")
        yield _problem("slices_on_one_machine", message)
    if draft.treatment.chosen():
        message = _("In slices nothing is done to the machine for a single run.")
        yield _problem("slices_untreated", message)


def _length_problems(design: Design, slice_s: int) -> Iterator[Problem]:
    seconds = design.draft.parameters.get("duration")
    if seconds is None:
        return
    number = slices.number_of({"duration": seconds}, slice_s)
    if seconds % slice_s:
        message = _("%(seconds)d s are no whole number of slices of %(slice)d s.")
        message %= {"seconds": seconds, "slice": slice_s}
        remedy = _("Change the duration, or the slices.")
        yield Problem("out_of_range", message, remedy, "duration")
    if not LEAST_SLICES <= number <= MOST_SLICES:
        words = {"number": number, "least": LEAST_SLICES, "most": MOST_SLICES}
        message = (
            _("A run of %(number)d slices; it has from %(least)d to %(most)d.") % words
        )
        remedy = _("Change the duration, or choose whole runs.")
        yield Problem("out_of_range", message, remedy, "duration")
    in_turn = max((len(server_part.cells) for server_part in design.parts), default=0)
    if seconds * in_turn > MOST_SECONDS_IN_TURN:
        message = _(
            "A round of %(seconds)d s of load is too long; at most %(most)d s are."
        )
        message %= {"seconds": seconds * in_turn, "most": MOST_SECONDS_IN_TURN}
        remedy = _("Choose a shorter duration and more repeats, or whole runs.")
        yield Problem("out_of_range", message, remedy, "duration")


def _memory_problems(server_part: Part) -> Iterator[Problem]:
    """All clusters of a server are up at once."""
    number = len(server_part.cells)
    if number > MOST_IN_TURN:
        message = _("%(number)d clusters would be up at once; at most %(most)d are.")
        message %= {"number": number, "most": MOST_IN_TURN}
        remedy = _("Choose fewer levels, or whole runs.")
        yield Problem("too_many_in_turn", message, remedy, "slice_seconds")
    remedy = _("Choose fewer levels, a configuration with less, or whole runs.")
    problem = memory_problem(
        server_part.server, number, needed_bytes(server_part), remedy
    )
    if problem is not None:
        yield problem


def memory_problem(
    server: Server, number: int, needed: int, remedy: str
) -> Problem | None:
    """What is wrong where so many clusters have `needed` bytes of shared_buffers together.

    None if that is left for them, or the server's memory is not known.
    """
    memory = server.hardware.memory_bytes if server.hardware else None
    if memory is None or needed <= memory * MOST_OF_MEMORY:
        return None
    message = _(
        "%(number)d clusters at once have %(needed).3g GiB of shared_buffers; %(server)s has "
        "%(memory).3g GiB of memory."
    )
    words = {
        "number": number,
        "needed": needed / 2**30,
        "server": server.name,
        "memory": memory / 2**30,
    }
    return Problem("memory_too_small", message % words, remedy, "slice_seconds")


def expected(draft: Draft) -> Expected | None:
    """What whole runs and slices would show of two conditions in the time that the draft asks for.

    None for a scenario that offers no slices. Five queries.
    """
    scenario = registry.get(draft.scenario, draft.levels)
    if not scenario.offers_slices or not draft.parameters.get("duration"):
        return None
    rounds = (
        slices.number_of(draft.parameters, draft.slice_seconds or 1) * draft.repeats
    )
    return recorded_seconds.expected_on(
        draft.server, scenario.primary_metric, repeats=draft.repeats, rounds=rounds
    )


def is_preferred(design: Design) -> bool:
    """Whether a design in slices is possible, and would show clearly more than whole runs."""
    if any(problems(design)):
        return False
    expected_effects = expected(design.draft)
    return expected_effects is not None and expected_effects.prefers_slices


def slice_if_preferred(draft: Draft) -> Draft:
    """The draft in slices of a second where these are possible, and would show clearly more."""
    in_turn = replace(draft, slice_seconds=1)
    return in_turn if is_preferred(resolve(in_turn)) else draft


# What else is on the machine needs memory too, and so do the files that clusters read.
MOST_OF_MEMORY = 0.6


def needed_bytes(server_part: Part) -> int:
    """The shared_buffers of all clusters of a server together."""
    return sum(
        shared_buffers(cell.cluster_settings, major_of(cell.installation))
        for cell in server_part.cells
    )


def shared_buffers(settings: Mapping[str, str], major: str) -> int:
    """How many bytes a cluster with these settings has of them."""
    return Effective(settings, major).bytes("shared_buffers") or 0
