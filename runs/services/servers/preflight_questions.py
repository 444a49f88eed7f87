"""Questions of a preflight to servers, sent to all of them at the same time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import async_to_sync
from cryptography.fernet import InvalidToken
from django.utils.translation import gettext as _

from runs.execution import preflight as engine
from runs.execution.base_dir import BaseDir
from runs.execution.errors import HostUnreachable, TargetProblem
from runs.execution.preflight import Target
from runs.models import Server
from runs.services import connections
from runs.services.access import instances
from runs.services.servers import logins as ways

PATIENCE_SECONDS = 6.0

Refusal = TargetProblem | InvalidToken
Answer = Target | Refusal


@dataclass(frozen=True)
class Question:
    """A server, and the PostgreSQL folders to check there.

    `privileges` are checked with sudo; `addresses` are those that it must be able to reach.
    """

    server: Server
    bindirs: tuple[str, ...]
    privileges: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def ask_all(questions: Sequence[Question]) -> list[Answer]:
    """What each server answers, or why it does not, in the given order.

    Takes as long as the slowest, at most PATIENCE_SECONDS. Raises errors that no server caused.
    """
    found, instance = [_way(each) for each in questions], instances.name()
    connections.give_back()
    return async_to_sync(_gathered)(found, questions, instance)


def _way(question: Question) -> ways.Way | Refusal:
    """How the server is reached, as the database knows it."""
    server = question.server
    if server.is_only_a_hop:
        return TargetProblem(
            _("%(server)s has no base directory.") % {"server": server.name},
            code="only_a_hop",
            remedy=_("Give it one on its page, or choose another server."),
        )
    try:
        return ways.way_to(server)
    except (TargetProblem, InvalidToken) as problem:
        return problem


async def _gathered(
    found: Sequence[ways.Way | Refusal], questions: Sequence[Question], instance: str
) -> list[Answer]:
    asked = (
        _answer(way, question, BaseDir(question.server.base_dir, instance))
        for way, question in zip(found, questions, strict=True)
    )
    return list(await asyncio.gather(*asked))


async def _answer(way: ways.Way | Refusal, question: Question, base: BaseDir) -> Answer:
    if isinstance(way, TargetProblem | InvalidToken):
        return way
    try:
        return await asyncio.wait_for(_asked(way, question, base), PATIENCE_SECONDS)
    except TimeoutError:
        message = f"{way[-1].address} did not answer within {PATIENCE_SECONDS:.0f} s."
        return HostUnreachable(message)
    except (TargetProblem, InvalidToken) as problem:
        return problem


async def _asked(way: ways.Way, question: Question, base: BaseDir) -> Target:
    async with await ways.connect_along(way) as host:
        bindirs, privileges = question.bindirs, question.privileges
        return await engine.look(host, base, bindirs, privileges, question.addresses)
