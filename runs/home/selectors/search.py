"""One search over all that a reader may see: campaigns, runs, machines, configurations."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, QuerySet

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.compare.selectors.address import candidates
from runs.configurations.selectors import configurations
from runs.models import Observation, Run, Server, Source, Workload
from runs.servers.selectors import hardware
from runs.shared.words import of_configurations, of_hardware, saying
from runs.workloads.selectors import scenarios

MOST = 8


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
    return [group for group in _groups(words, to) if group.rows]


def _groups(words: str, to: Reader) -> Iterable[Group]:
    # "548", "#548", "run 548"
    number = words.strip().lower().removeprefix("run").strip().removeprefix("#")
    if number.isdecimal() and len(number) < 20 and int(number) <= BigIntegerField.MAX_BIGINT:
        runs = projects.visible(Run.objects.select_related("campaign", "cell"), to=to)
        yield _group("run", runs.filter(pk=int(number)))
    yield _group("campaign", candidates.campaigns(words, reader=to, number=MOST + 1))
    sources = Source.objects.order_by("-year")
    yield _group("source", saying(sources, words, "slug", "title", "title_ja", "publisher"))
    yield _group("server", saying(Server.objects.order_by("name"), words, "slug", "name"))
    yield _group("hardware", of_hardware(hardware.listed(to=to), words))
    yield _group("configuration", of_configurations(configurations.listed(to=to), words))
    runnable = scenarios.listed(to=to).filter(runnable=True)
    yield _group("scenario", saying(runnable, words, "slug", "title", "description"))
    observations = projects.visible(Observation.objects.order_by("-pk"), to=to)
    yield _group("observation", saying(observations, words, "slug", "title"))
    workloads = projects.visible(Workload.objects.order_by("name"), to=to)
    yield _group("workload", saying(workloads, words, "slug", "name"))


def _group(kind: str, rows_found: QuerySet[Any]) -> Group:
    rows = list(rows_found[: MOST + 1])
    return Group(kind, rows[:MOST], len(rows) > MOST)
