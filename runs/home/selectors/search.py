"""One search over all that a reader may see: campaigns, runs, machines, configurations."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Q, QuerySet

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.compare.selectors.address import candidates
from runs.configurations.selectors import configurations
from runs.models import Observation, Run, Server, Source, Workload
from runs.servers.selectors import hardware
from runs.workloads.selectors import scenarios

MOST, MOST_WORDS = 8, 8
# Characters that are searched for, here and in every list.
LONGEST = 200


@dataclass(frozen=True)
class Group:
    """What was found of one `kind` (a model's name), at most MOST; `has_more` says of more."""

    kind: str
    rows: list[Any]
    has_more: bool


def everywhere(words: str, *, to: Reader) -> list[Group]:
    """What has all the words, by kind, without empty groups. One query a kind; none for no words.

    Campaigns are found as in a comparison: by versions, commits, machines and words of a
    publication as well.
    """
    if not words.strip():
        return []
    return [each for each in _groups(words, to) if each.rows]


def _groups(words: str, to: Reader) -> Iterable[Group]:
    # "548", "#548", "run 548"
    number = words.strip().lower().removeprefix("run").strip().removeprefix("#")
    if number.isdecimal() and len(number) < 20 and int(number) <= BigIntegerField.MAX_BIGINT:
        runs = projects.visible(Run.objects.select_related("campaign", "cell"), to=to)
        yield _group("run", runs.filter(pk=int(number)))
    yield _group("campaign", candidates.campaigns(words, reader=to, number=MOST + 1))
    sources = Source.objects.order_by("-year")
    yield _group("source", _saying(sources, words, "slug", "title", "title_ja", "publisher"))
    yield _group("server", _saying(Server.objects.order_by("name"), words, "slug", "name"))
    yield _group("hardware", of_hardware(hardware.listed(to=to), words))
    yield _group("configuration", of_configurations(configurations.listed(to=to), words))
    runnable = scenarios.listed(to=to).filter(runnable=True)
    yield _group("scenario", _saying(runnable, words, "slug", "title", "description"))
    observations = projects.visible(Observation.objects.order_by("-pk"), to=to)
    yield _group("observation", _saying(observations, words, "slug", "title"))
    workloads = projects.visible(Workload.objects.order_by("name"), to=to)
    yield _group("workload", _saying(workloads, words, "slug", "name"))


def _group(kind: str, found: QuerySet[Any]) -> Group:
    rows = list(found[: MOST + 1])
    return Group(kind, rows[:MOST], len(rows) > MOST)


def of_configurations(found: QuerySet[Any], words: str) -> QuerySet[Any]:
    """Those of these configurations that have all of the words; one may be a setting's name."""
    return _saying(found, words, "name", "slug", "description", are_settings=True)


def of_hardware(found: QuerySet[Any], words: str) -> QuerySet[Any]:
    """Those of these hardware profiles that have all of the words."""
    return _saying(found, words, "name", "cpu_model", "virtualization", "facts__cloud")


def _saying(
    found: QuerySet[Any], words: str, *names: str, are_settings: bool = False
) -> QuerySet[Any]:
    """Those that have every word in one of these fields, or as the name of a setting."""
    for word in words.split()[:MOST_WORDS]:
        condition = Q(settings__has_key=word.lower()) if are_settings else Q()
        for name in names:
            condition |= Q(**{f"{name}__icontains": word})
        found = found.filter(condition)
    return found
