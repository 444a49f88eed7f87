"""Random histories of commits, and random lines of versions, to be asked at every door."""

from dataclasses import dataclass

from runs.histories.services import changes
from runs.models import Campaign, Change
from tests import factories
from tests.compared_tables import GAINS
from tests.history_points import commit, repeats, store

# Changes that a history of these scatters shows, and such as it does not.
LEVELS = (0.5, 0.8, 0.9, 0.97, 1.0, 1.1, 1.6)
SCATTERS = (0.002, 0.01, 0.03)
SUBJECTS = (
    "",
    "Drop the index",
    "Vacuum <earlier> & *twice*",
    "初期化を直す",
    "Count [all] #7",
)
MAJORS = ("13.22", "14.19", "15.14", "16.14", "17.6", "18.4")


@dataclass(frozen=True)
class RandomHistory:
    """A campaign of uploads whose changes were found."""

    campaign: str
    metric: str


def random_history(generator, number):
    """Some conditions over commits, with at most two changes of level, each of some conditions."""
    slug = f"history-{number}"
    metric = generator.choice(("tps", "tps", "latency"))
    clients = generator.sample((1, 2, 4, 8, 16, 32), generator.randint(1, 6))
    commits = generator.randint(6, 36)
    scatter = generator.choice(SCATTERS)
    steps = [
        (generator.randrange(2, commits), generator.choice(LEVELS), generator.random())
        for _step in range(generator.randint(0, 2))
    ]
    factor_of = {
        (place, condition): level if generator.random() < share else 1.0
        for place, level, share in steps
        for condition in clients
    }
    runs = []
    for position in range(commits):
        told = {
            "subject": generator.choice(SUBJECTS),
            "author": generator.choice(("", "Jane")),
        }
        revision = commit(position, **told)
        job = f"job-{number}-{position}"
        for condition in clients:
            level = 1000.0 * condition
            for (place, of_condition), factor in factor_of.items():
                if of_condition == condition and position >= place:
                    level *= factor
            values = [
                level * generator.lognormvariate(0, scatter) for _repeat in range(3)
            ]
            levels = {"clients": condition}
            runs += repeats(
                revision, campaign=slug, levels=levels, job=job, **{metric: values}
            )
    store(runs)
    campaign = Campaign.objects.get(slug=slug)
    changes.find(campaign_id=campaign.pk)
    if generator.random() < 0.3:
        for change in Change.objects.filter(campaign=campaign)[:1]:
            changes.decide(
                change=change, decision=generator.choice(("confirmed", "dismissed"))
            )
    return RandomHistory(slug, metric)


def random_line(generator, number):
    """One or two campaigns over versions, each on a machine of its own; (from, to) to be asked."""
    majors = sorted(generator.sample(MAJORS, generator.randint(2, 4)))
    for position in range(generator.randint(1, 2)):
        clients = sorted(generator.sample((1, 4, 16), generator.randint(1, 2)))
        measured = majors if position == 0 else sorted(generator.sample(MAJORS, 2))
        campaign = factories.campaign(
            f"line-{number}-{position}",
            factors={"version": measured, "clients": clients},
            repeats=generator.choice((3, 5)),
            parameters={"duration": 60},
            state="finished",
        )
        scatter = generator.choice((0.001, 0.01, 0.05))
        gains = {(v, c): generator.choice(GAINS) for v in measured for c in clients}
        figures = {
            run: {
                "tps": 1000
                * run.cell.levels["clients"]
                * gains[run.cell.version, run.cell.levels["clients"]]
                * generator.lognormvariate(0, scatter)
            }
            for run in campaign.runs.select_related("cell").order_by("pk")
        }
        factories.finish_many(figures)
    ends = sorted(
        generator.sample(majors, 2), key=lambda version: int(version.split(".")[0])
    )
    return tuple(version.split(".")[0] for version in ends)
