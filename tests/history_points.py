"""Builders of uploaded histories: runs stored by the service, as the API does it."""

import math
from datetime import UTC, datetime, timedelta
from random import Random

from runs.access.services import projects
from runs.uploads import services
from runs.uploads.services import (
    GivenMeasurement,
    GivenMergeBase,
    GivenProfile,
    GivenRevision,
    GivenRun,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
UNITS = {
    "tps": ("tps", "higher"),
    "latency": ("ms", "lower"),
    "size": ("MB", "neutral"),
}


def sha(number):
    """The sha of the so-manieth commit."""
    return f"{number:012x}"


def commit(number, ref="main", parents=(), **fields):
    """The so-manieth commit, one a day; `parents` are sha."""
    made = START + timedelta(days=number)
    return GivenRevision(
        sha(number), ref=ref, committed_at=made, parents=tuple(parents), **fields
    )


def left_at(number):
    """The so-manieth commit as where another one left a branch."""
    return GivenMergeBase(sha(number), START + timedelta(days=number))


def given(metric, value):
    unit, direction = UNITS[metric]
    return GivenMeasurement(metric, float(value), unit=unit, direction=direction)


def repeats(
    revision=None,
    *,
    campaign="nightly",
    at=START,
    levels=None,
    hardware="",
    job="one",
    **values,
):
    """A run for each value: repeats(commit(1), tps=[990, 1000, 1010]); all in one job."""
    number = max(len(found) for found in values.values())
    return [
        GivenRun(
            at="",
            campaign=campaign,
            scenario="tpcb-like",
            started_at=at,
            finished_at=at + timedelta(minutes=1),
            status="finished",
            levels={"clients": 8} if levels is None else levels,
            hardware=GivenProfile(fields={"cpu_model": hardware}) if hardware else None,
            revision=revision,
            labels={"job": job} if job else {},
            measurements=tuple(
                given(metric, found[place])
                for metric, found in values.items()
                if place < len(found)
            ),
        )
        for place in range(number)
    ]


def store(*runs, project=None):
    """Store runs; lists of them are taken apart."""
    flat = [
        run for each in runs for run in (each if isinstance(each, list) else [each])
    ]
    return services.store(runs=flat, project=project or projects.default())


def noisy(level, *, runs=3, noise=0.01, random=None):
    """Values around a level."""
    random = random or Random(1)
    return [level * math.exp(random.gauss(0, noise)) for _ in range(runs)]


def history(
    levels, *, runs=3, noise=0.01, seed=1, first=0, ref="main", of=None, **fields
):
    """Runs of one commit a level: history([1000] * 40 + [900] * 20), of a condition."""
    random = Random(seed)
    made = []
    for number, level in enumerate(levels, start=first):
        values = noisy(level, runs=runs, noise=noise, random=random)
        made += repeats(commit(number, ref), tps=values, levels=of, **fields)
    return made
