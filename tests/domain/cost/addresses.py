"""What the gate asks for: every address that answers GET, each with its filters.

What is asked for lies where it is dearest to find: in the oldest rows, in few of them, or nowhere.
Words in braces are those of `database.known()`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator

from tests.rights import ADDRESSES

Values = Mapping[str, Sequence[str]]

_ORIGINS = ("executed", "uploaded", "published")
_CAMPAIGNS = ("lab-00000", "ci-00000", "long", "ci-long")
_VERSIONS = ("16", "18.1", "9.4", "9.4.26", "8.4", "9")

# What each filter of a list of the API is asked for. Every filter of its schema has its place here.
LISTS: Mapping[str, Values] = {
    "audit": {
        "action": ("queue", "rare", "nothing"),
        "actor": ("admin", "rare", "nothing"),
        "project": ("default", "nothing"),
        "subject": ("campaign lab-00000", "nothing"),
    },
    "bisections": {},
    "campaigns": {
        "origin": _ORIGINS,
        "scenario": ("fixed-point-read", "page-checksums"),
        "state": ("finished", "queued", "incomplete"),
    },
    "changes": {
        "campaign": ("ci-00000", "lab-00000", "ci-long"),
        "decision": ("open", "confirmed", "refuted"),
        "kind": ("step", "alarm"),
        "metric": ("tps", "rare"),
    },
    "configurations": {
        "origin": ("published", "own"),
        "q": ("nothing", "own"),
        "setting": ("work_mem", "nothing"),
    },
    "hardware": {
        "cpu_model": ("EPYC", "nothing"),
        "q": ("machine", "nothing"),
        "server": ("lab-1",),
        "source": ("{source}",),
        "virtualization": ("kvm", "nothing"),
    },
    "measurements": {
        "campaign": _CAMPAIGNS,
        "metric": ("tps", "rare"),
        "origin": _ORIGINS,
        "run": ("{run}", "1000000000"),
        "source": ("{source}",),
        "table": ("{table}", "nothing"),
        "version": _VERSIONS,
    },
    "observations": {},
    "runs": {
        "campaign": _CAMPAIGNS,
        "hardware": ("cost", "rare", "nothing"),
        "origin": _ORIGINS,
        "server": ("lab-1",),
        "state": ("finished", "failed", "queued", "lost"),
        "validity": ("valid", "doubtful", "invalid"),
        "version": _VERSIONS,
    },
    "scenarios": {"runnable": ("true", "false")},
    "schedules": {},
    "servers": {"hardware": ("cost", "nothing"), "state": ("ready", "refused")},
    "sources": {},
    "webhooks": {},
}
# Their pages take the same filters.
LISTS_WITH_PAGE = {
    "audit",
    "campaigns",
    "changes",
    "configurations",
    "hardware",
    "runs",
    "servers",
}
# Two filters together, of which neither alone finds few rows.
TOGETHER = (
    "/api/v1/runs/?campaign=long&state=failed",
    "/api/v1/runs/?campaign=long&hardware=rare",
    "/api/v1/runs/?campaign=long&validity=doubtful",
    # Frequent, though not in this campaign.
    "/api/v1/runs/?campaign=ci-long&version=16",
    "/api/v1/runs/?campaign=ci-long&version=16.11",
    "/api/v1/runs/?campaign=ci-long&validity=valid",
    "/api/v1/runs/?campaign=ci-long&server=lab-1",
    "/api/v1/measurements/?campaign=ci-long&version=16",
    "/api/v1/runs/?origin=executed&state=failed",
    "/api/v1/measurements/?campaign=long&metric=tps",
    "/api/v1/measurements/?campaign=ci-long&metric=rare",
    "/api/v1/measurements/?campaign=lab-00000&metric=rare",
)
API = (
    "audit/{audit}/",
    "bisections/{bisection}/",
    "campaigns/lab-00000/",
    "campaigns/ci-00000/",
    "campaigns/lab-00000/annotations/",
    "campaigns/lab-00000/report/?format=md",
    "campaigns/lab-00000/plan/",
    "campaigns/{published}/reproduction/?server=lab-1&quick=true",
    "campaigns/{published}/reproduction/?server=lab-1&generators=lab-1&cluster_servers=lab-1",
    "changes/{change}/",
    "configurations/own-0/",
    "hardware/{hardware}/",
    "measurements/{measurement}/",
    "runs/{run}/",
    "runs/{uploaded}/",
    "scenarios/ci/",
    "runs/{run}/series/tps/?skip=1",
    "scenarios/fixed-point-read/",
    "schedules/{schedule}/",
    "servers/lab-1/",
    "sources/{source}/",
    "observations/autumn/",
    "webhooks/{webhook}/",
    "webhooks/{webhook}/deliveries/",
    "preflight/{preflight}/",
    "trials/{trial}/",
    "schema/",
    "compare/?base=campaign:lab-00000&head=campaign:lab-00001&metric=tps&level=clients=8&effect=2",
    "compare/?base=campaign:lab-00000&head=campaign:lab-00001&ignore=hardware",
    "compare/?campaign=ci-00000&head=revision:{sha}&base=revision:{sha_before}",
    "compare/why/?a={cell}&b={next_cell}",
    "history/?campaign=ci-00000&level=clients=8",
    "history/?campaign=ci-00000&metric=m1&ref=main",
    "history/?campaign=ci-00000&skip=1",
    "search/?q=lab-00000",
)
NOWHERE = "/api/v1/nothing/here/"
# The database has no records that these draw: 404, after all that they look for.
UNDRAWN = (
    "/compare/why/chart.svg?",
    "/chart.svg?chart=anchor-1",
    "/chart.svg?chart=machines",
    "/servers/lab-1/chart.svg",
    "/servers/lab-1/chart.svg?chart=load",
)
PAGES = (
    "/",
    "/archive/",
    "/archive/?q=index",
    "/archive/?source={source}",
    "/archive/discrepancies/",
    "/archive/later/",
    "/archive/{source}/",
    "/archive/figures/{published}/{place}/",
    "/archive/figures/{published}/{place}/citation.bib",
    "/archive/tables/{published}/citation.bib",
    "/archive/{source}/citation.bib",
    "/campaigns/",
    "/campaigns/?origin=uploaded",
    "/campaigns/?after={campaign}",
    "/campaigns/?before={campaign}",
    "/campaigns/new/?server=lab-1&scenario=pgbench",
    "/campaigns/lab-00000/",
    "/campaigns/ci-00000/",
    "/campaigns/{published}/",
    "/campaigns/ci-00000/history/",
    "/campaigns/new/estimate/?server=lab-1&scenario=pgbench",
    "/uploads/new/",
    "/campaigns/ci-00000/history/?level=clients=8&metric=m1",
    "/campaigns/ci-00000/badge.svg",
    "/campaigns/lab-00000/chart.svg",
    "/campaigns/ci-00000/chart.svg",
    "/campaigns/{published}/chart.svg",
    "/campaigns/ci-00000/history/chart.svg",
    "/compare/chart.svg?s=lab-00000&s=lab-00001",
    "/versions/chart.svg",
    "/topics/page-checksums/chart.svg",
    "/runs/{run}/chart.svg",
    "/compare/why/chart.svg?a={cell}&b={next_cell}",
    "/observations/autumn/chart.svg",
    "/servers/lab-1/chart.svg",
    "/servers/lab-1/chart.svg?chart=load",
    "/campaigns/lab-00000/schedule/",
    *(f"/campaigns/lab-00000/{each}" for each in ("report/", "script/", "export.csv")),
    "/campaigns/lab-00000/export.json",
    "/campaigns/ci-00000/report/",
    "/changes/",
    "/changes/?which=confirmed",
    "/changes/?which=dismissed",
    "/changes/?which=all",
    "/changes/?before={change}",
    "/webhooks/",
    "/take-over/",
    "/workers/",
    "/runs/",
    "/runs/?after={run}",
    "/runs/?before={run}",
    "/runs/{run}/",
    "/runs/{uploaded}/",
    "/runs/{run}/series/",
    "/runs/{run}/profile/",
    "/runs/{run}/script/",
    "/runs/{run}/artifacts/out/",
    "/plans/?left={run}/plan-0.json",
    "/workloads/",
    "/workloads/new/",
    "/workloads/own-0/",
    "/workloads/own-0/edit/",
    "/loads/",
    "/loads/new/",
    "/configurations/",
    "/configurations/new/",
    "/configurations/names/?prefix=work",
    "/configurations/own-0/",
    "/configurations/own-0/edit/",
    "/configurations/own-0/postgresql.conf",
    "/configurations/diff/?a=run:{run}&b=configuration:own-0",
    "/servers/",
    "/servers/new/",
    "/servers/keys/",
    "/servers/checks/{preflight}/",
    "/servers/lab-1/",
    "/servers/lab-1/edit/",
    "/hardware/",
    "/hardware/?q=machine",
    "/hardware/{hardware}/",
    "/topologies/",
    "/topologies/?kind=single",
    "/topologies/{topology}/",
    "/compare/",
    "/compare/?q=lab-00000",
    "/compare/?q=nothing",
    "/search/",
    "/search/?q=lab-00000",
    "/search/?q=nothing",
    "/search/?q={run}",
    # All of a kind, from a place on.
    "/search/?q=lab&kind=campaign&skip=1",
    "/compare/?q=16.11",
    "/compare/?q=&in_version=9.4&in_os=Debian",
    "/compare/?s=lab-00000",
    "/compare/?s=lab-00000&s=lab-00001",
    "/compare/report/?s=lab-00000&s=lab-00001",
    "/compare/why/?a={cell}&b={next_cell}",
    "/compare/cells/?a={cell}&b={next_cell}",
    "/compare/saved/",
    "/compare/saved/{saved}/",
    "/bisections/new/?campaign=ci-00000",
    "/bisections/{bisection}/",
    "/schedules/",
    "/versions/",
    "/versions/?theme=fixed-point-update&clients=8&base=16&by=os",
    "/versions/?from=13&to=17",
    "/api/v1/versions/?from=13&to=17&theme=fixed-point-read&clients=8",
    "/topics/",
    "/topics/page-checksums/",
    "/topics/storage/",
    "/help/",
    "/scenarios/",
    "/observations/",
    "/observations/new/?server=lab-1",
    "/observations/autumn/",
    "/observations/autumn/?edition=2025&against=autumn~2026",
    "/observations/autumn/report/?edition=2026&against=autumn~2025",
    "/observations/autumn/publication/?edition=2026",
    "/scenarios/fixed-point-read/",
    "/projects/",
    "/projects/default/people/",
    "/projects/default/metrics/",
    "/projects/default/feed.atom",
    "/projects/default/metrics/m1/",
    "/audit/",
    "/audit/?action=rare",
    "/audit/?subject=campaign+lab-00000",
    "/audit/?project=default&after={audit}",
    "/audit/?before={audit}",
    "/tokens/",
    "/healthz",
    "/metrics",
    "/uploads/new/",
)
# What else pages read of their addresses.
FURTHER = (
    "/archive/?theme=fixed-point-read&version=9.2&year=2013&os=Linux&topology=single&hardware=x",
    "/bisections/new/?campaign=ci-00000&base=a&head=b&metric=tps&effect=2&ignore=x&scenario=pgbench",
    "/bisections/new/?campaign=ci-00000&server=lab-1",
    "/campaigns/ci-00000/history/?skip=1",
    "/campaigns/ci-00000/history/chart.svg?level=clients=8&metric=m1&skip=0",
    "/campaigns/{published}/chart.svg?chart=1",
    "/campaigns/lab-00000/chart.svg?by=steps&cells=2&metric=m1&order=x&ratios=2&troubled=1",
    "/runs/{run}/chart.svg?chart=machines&from=0&to=10",
    "/observations/autumn/chart.svg?chart=anchor-1&edition=2026",
    "/versions/chart.svg?theme=fixed-point-read&clients=8&base=16&by=os&from=13&to=17",
    "/compare/chart.svg?s=lab-00000&s=lab-00001&chart=forest",
    "/campaigns/ci-00000/badge.svg?base=revision:{sha_before}&metric=tps",
    "/campaigns/lab-00000/?by=steps&cells=2&metric=m1&order=x&ratios=2&troubled=1",
    "/campaigns/new/?from={published}&server=lab-1",
    "/compare/?q=&in_hardware=cost",
    "/compare/?q=ci-long",
    "/compare/?q=&in_hardware=rare",
    "/compare/?q=&in_hardware=rare&in_origin=uploaded",
    "/compare/?q=&in_hardware=rare&in_topology=single",
    "/compare/?q=&in_origin=uploaded",
    "/compare/?q=&in_topology=single",
    "/hardware/?before=1",
    "/compare/saved/?after=1000000000",
    "/compare/saved/?before=1",
    "/hardware/?after={hardware}",
    "/configurations/new/?from=own-0",
    "/configurations/names/?prefix=work&majors=18",
    "/configurations/own-0/?version=18",
    "/configurations/own-0/postgresql.conf?version=18",
    "/configurations/own-0/postgresql.conf?of=run",
    "/configurations/diff/?a=cell:{cell}&b=campaign:lab-00000&all=1",
    "/configurations/?after=1",
    "/configurations/?before=1",
    "/topologies/?after=1",
    "/topologies/?before=1",
    "/workloads/?after=1",
    "/workloads/?before=1",
    "/loads/?after=1",
    "/loads/?before=1",
    "/plans/?left={run}/plan-0.json&right={run}/plan-0.json",
    "/runs/{run}/profile/?against={run}&q=main&zoom=0",
    "/runs/{run}/series/?from=0&to=10",
    "/workloads/own-0/?version=1",
    "/workloads/new/?from=own-0",
    "/projects/default/metrics/?after=1",
    "/projects/default/metrics/?before=1",
)
# These answer with all of a campaign that grows with the database, so they may cost as many times
# more as it has more cells.
WHOLE = (
    *(f"/campaigns/long/{each}" for each in ("", "report/", "export.csv")),
    "/campaigns/ci-long/",
    "/api/v1/campaigns/long/",
    "/api/v1/campaigns/long/plan/",
    "/compare/?s=long",
    "/api/v1/campaigns/ci-long/",
    "/compare/cells/?a={long_cell}&b={next_long_cell}",
    # The last ten points, of which a short history has fewer; and with the last points of each row,
    # which are found among all of its series.
    "/api/v1/compare/?campaign=ci-long&head=revision:{newest_sha}&base=history:main",
    "/api/v1/compare/?campaign=ci-long&head=revision:{newest_sha}&base=revision:main&format=md",
    # What jobs scatter by is learnt from the last points (`job_scatter.POINTS`), of which a
    # short history has fewer.
    "/api/v1/compare/?campaign=ci-long&head=revision:{newest_sha}&base=revision:main",
)
# What these find lies behind newer rows of private projects, which they read: measurements do not
# say by themselves whether everybody may see them, and neither do the cells of a level.
BEHIND = (
    "/api/v1/measurements/?origin=executed",
    "/api/v1/measurements/?version=18.1",
    "/api/v1/hardware/{hardware}/",
    "/hardware/{hardware}/",
    "/hardware/?after={hardware}",
    "/archive/figures/{published}/{place}/",
    # What many rows have is read among newer ones that have it not.
    "/api/v1/runs/?validity=valid",
    "/api/v1/runs/?origin=uploaded",
    "/api/v1/measurements/?origin=uploaded",
    # A member's part is found among all of the version, or among all of the own project's.
    "/api/v1/runs/?version=18.1",
)
# A long history begins with its newest commits, and its verdict reads two of them.
VERDICTS = (
    "/campaigns/ci-long/history/",
    "/api/v1/history/?campaign=ci-long&level=clients=8",
    "/campaigns/ci-long/badge.svg",
    "/api/v1/compare/?campaign=ci-long",
    "/api/v1/compare/?campaign=ci-long&head=revision:{long_sha}&base=revision:{long_sha_before}",
)

# What is asked for of what `axes` make, besides.
OF_SHAPES = (
    "/campaigns/cells-00000/",
    "/campaigns/cells-00000/?cells=2",
    "/campaigns/cells-00000/report/",
    "/api/v1/campaigns/cells-00000/",
    "/compare/?s=cells-00000",
    "/campaigns/repeats-00000/",
    "/campaigns/repeats-00001/",
    "/campaigns/commits-00000/",
    "/campaigns/series-00000/",
    "/campaigns/series-00000/history/",
    "/api/v1/history/?campaign=series-00000",
    "/campaigns/machines-00000/",
    "/compare/?q=commits",
    "/compare/?q=series",
    "/campaigns/failed-00000/",
    "/api/v1/runs/?campaign=repeats-00001",
    "/api/v1/runs/?campaign=failed-00000",
    "/api/v1/measurements/?campaign=repeats-00001&metric=tps",
    # A history shows its newest commits.
    "/campaigns/commits-00000/history/",
    "/campaigns/commits-00000/history/?level=clients=1",
    "/api/v1/history/?campaign=commits-00000&level=clients=1",
)
# By axis the answers that show all of what grows on it.
WHOLE_ON: Mapping[str, Sequence[str]] = {
    # The line of versions judges a dozen campaigns by all their cells and repeats.
    "cells": (
        *(each for each in OF_SHAPES if "cells-00000" in each),
        "/",
        "/versions/",
    ),
    "repeats": (
        "/campaigns/repeats-00000/",
        "/campaigns/repeats-00001/",
        "/",
        "/versions/",
    ),
    "commits": ("/campaigns/commits-00000/",),
    "series": (
        *(each for each in OF_SHAPES if "series-00000" in each),
        # As many changes of a commit are one line.
        "/",
        "/changes/",
        "/changes/?which=all",
    ),
    "machines": ("/campaigns/machines-00000/",),
    "projects": ("/projects/",),
    "users": ("/projects/default/people/", "/tokens/"),
}

# Of any request: a change says in how many series of its commit a metric was measured, and a
# campaign is offered with each of its series.
WHOLE_STATEMENTS = (
    'COUNT(DISTINCT "runs_cell"."series_key")',
    "WITH RECURSIVE series AS",
)

# Of wide campaigns these show the verdicts that control has made.
JUDGED_BY_CONTROL = (
    "/campaigns/cells-00000/",
    "/campaigns/cells-00000/?cells=2",
    "/api/v1/campaigns/cells-00000/",
)

# How much is answered, and how it is written: the rows are the same.
SAME = {"cursor", "page_size", "format", "lang"}
# These say how many campaigns there are of each of what they list, or look for a word in all
# machines, in the cells of a version or in each campaign: a thousand campaigns are some thirty
# buffers, a thousand machines some twenty, and ten thousand cells of a version some three hundred.
COUNTS = (
    "/compare/?q=16.11",
    "/compare/?q=ci-long",
    "/compare/?q=nothing",
    "/compare/?q=lab-00000",
    "/compare/?q=&in_topology=single",
    "/workloads/own-0/",
    "/workloads/own-0/?version=1",
    # Its form offers each project.
    "/campaigns/new/?server=lab-1&scenario=pgbench",
    "/compare/?q=&in_hardware=cost",
    "/compare/?q=&in_hardware=rare",
    "/compare/?q=&in_hardware=rare&in_origin=uploaded",
    "/compare/?q=&in_hardware=rare&in_topology=single",
    "/hardware/?q=machine",
    "/hardware/?q=nothing",
    "/api/v1/hardware/?cpu_model=nothing",
    "/api/v1/hardware/?q=machine",
    "/api/v1/hardware/?q=nothing",
    "/api/v1/hardware/?virtualization=nothing",
    "/hardware/?virtualization=nothing",
    "/hardware/?cpu_model=nothing",
    "/api/v1/scenarios/",
    "/api/v1/scenarios/?runnable=true",
    "/api/v1/scenarios/?runnable=false",
    "/api/v1/scenarios/fixed-point-read/",
    "/api/v1/scenarios/ci/",
    "/scenarios/fixed-point-read/",
    "/configurations/",
    "/configurations/?q=own",
    "/configurations/?origin=own",
    "/configurations/?after=1",
    "/configurations/?before=1",
    "/topologies/?after=1",
    "/topologies/?before=1",
    "/topologies/",
    "/topologies/?kind=single",
    "/topologies/{topology}/",
)

# Not asked for, each for a reason.
# How a comparison is drawn, and what is counted in it; its rows are the same.
_DRAWN = {
    "at",
    "base",
    "effect",
    "facet",
    "fit",
    "ignore",
    "logx",
    "logy",
    "matters",
    "metric",
}
_DRAWN |= {"relative", "x", "s"}
UNASKED: Mapping[str, Set[str]] = {
    **dict.fromkeys(
        ("compare", "compare-cells", "compare-chart", "compare-report"), _DRAWN
    ),
    # One of the servers that it has read.
    "campaign-script": {"server"},
}
# Their fields are checked, and nothing is looked for by most of them.
FORMS = {"campaign-new", "campaign-estimate"}
_ACCOUNTS = ("account_", "mfa_", "usersessions_", "socialaccount_", "openid_connect_")
_ACCOUNT = "of django-allauth, or as its pages: reads one account"
_READS_NOTHING = "reads no table of ours"
_OF_LOAD = "opens one load, and the files of one of its campaigns"
EXCEPTIONS: Mapping[str, str] = {
    "api:docs": _READS_NOTHING,
    "upload-client": _READS_NOTHING,
    "comment-client": _READS_NOTHING,
    "styleguide": _READS_NOTHING,
    "load-detail": _OF_LOAD,
    "load-answer": _OF_LOAD,
    "load-report": _OF_LOAD,
    "api:load-answer": _OF_LOAD,
    "api:load-dump": "opens one load",
    "api:load-trials": _OF_LOAD,
    "login": _ACCOUNT,
    "logout": _ACCOUNT,
    "invitation": "reads one invitation by the hash of a secret that nobody has stored",
    "readyz": "asks whether PostgreSQL answers, and reads no table",
    "api:project-export": "streams a whole project, campaign by campaign",
    "archive-data": "writes all publications, which come with a release, into one file",
}


def addresses() -> Iterator[str]:
    """All that is asked for."""
    for name, filters in LISTS.items():
        yield f"/api/v1/{name}/"
        for each, values in filters.items():
            yield from (f"/api/v1/{name}/?{each}={value}" for value in values)
            if name in LISTS_WITH_PAGE:
                yield f"/{name}/?{each}={values[-1]}"
    yield from TOGETHER
    yield from (f"/api/v1/{each}" for each in API)
    yield from PAGES
    yield from FURTHER
    yield NOWHERE
    yield from VERDICTS
    yield from WHOLE


def missing(known: Mapping[str, object]) -> list[str]:
    """Addresses that answer GET, and filters of the API, that are not asked for; and exceptions
    that need not be one."""
    asked = _asked(known)
    return sorted([*_missing_names(asked.keys()), *_missing_filters(asked)])


def unasked(known: Mapping[str, object], read: Mapping[str, Set[str]]) -> list[str]:
    """What pages have read of their addresses that is not asked for."""
    asked = _asked(known)
    return sorted(
        f"{name}?{each}"
        for name, names in read.items()
        if not name.startswith("api:") and name not in FORMS
        for each in names - asked[name] - SAME - UNASKED.get(name, set())
    )


def _asked(known: Mapping[str, object]) -> dict[str, set[str]]:
    """The parameters that each address is asked with, by its name."""
    asked: dict[str, set[str]] = {}
    for each in addresses():
        path, _mark, query = each.format(**known).partition("?")
        names = asked.setdefault(resolve(path).view_name, set())
        names |= {part.partition("=")[0] for part in query.split("&")}
    return asked


def _missing_names(asked: Set[str]) -> Iterator[str]:
    for name, rules in ADDRESSES.items():
        is_excepted = name in EXCEPTIONS or name.startswith(_ACCOUNTS)
        if "GET" in rules and (name in asked) == is_excepted:
            yield f"{name}: {'not an exception' if is_excepted else 'not asked for'}"
    yield from (
        f"{name}: there is none" for name in EXCEPTIONS.keys() - ADDRESSES.keys()
    )


def _missing_filters(asked: Mapping[str, Set[str]]) -> Iterator[str]:
    schema: Any = SchemaGenerator().get_schema(request=None, public=True)
    for path, operations in schema["paths"].items():
        given = operations.get("get", {}).get("parameters", ())
        names = {each["name"] for each in given if each["in"] == "query"} - SAME
        name = resolve(re.sub(r"\{.*?\}", "1", path)).view_name
        if names and name not in EXCEPTIONS:
            found = asked.get(name, set())
            yield from (f"{path}?{each}" for each in names - found)
