"""Random tables to be compared: of campaigns executed here, of uploads, and of publications."""

from dataclasses import dataclass

from django.db.models import F

from runs.models import CellSummary, Run
from runs.models.campaigns import Origin
from tests import factories
from tests.history_points import commit, repeats, sha, store

VERSIONS = ("13.22", "14.19", "16.14", "17.6", "18.4")
GAINS = (0.5, 0.93, 0.97, 1.0, 1.0, 1.02, 1.08, 2.5)
SCATTERS = (0.001, 0.01, 0.05)


@dataclass(frozen=True)
class ComparedTable:
    """Two sides of one campaign, in the words of both kinds of address."""

    campaign: str
    base: str
    head: str
    level: str
    kind: str

    @property
    def series(self):
        """The query of the page: the baseline first."""
        sides = (
            f"s={self.campaign}~{self.level}%3D{side}"
            for side in (self.base, self.head)
        )
        return "&".join(sides).replace("%3D", "=")

    @property
    def sides(self):
        """The query of the API."""
        if self.kind == "uploaded":
            return f"campaign={self.campaign}&base=revision:{self.base}&head=revision:{self.head}"
        base, head = (
            f"campaign:{self.campaign}~{self.level}%3D{side}"
            for side in (self.base, self.head)
        )
        return f"base={base}&head={head}"


def random_table(generator, number):
    """A table of the kind that is next, with random conditions, repeats, gains and scatter."""
    make = (executed, uploaded, published)[number % 3]
    return make(generator, f"{make.__name__}-{number}")


def executed(generator, slug, **fields):
    """Rounds of versions, of which some runs are doubtful or ran on another machine."""
    base, head = sorted(generator.sample(VERSIONS, 2))
    clients = generator.sample((1, 2, 4, 8, 16), generator.randint(1, 4))
    campaign = factories.campaign(
        slug,
        factors={"version": [base, head], "clients": sorted(clients)},
        repeats=generator.choice((1, 2, 3, 5, 8)),
        state="finished",
        **fields,
    )
    figures = {}
    gains = {count: generator.choice(GAINS) for count in clients}
    scatter = generator.choice(SCATTERS)
    for run in campaign.runs.select_related("cell").order_by("pk"):
        count = run.cell.levels["clients"]
        gain = gains[count] if run.cell.version == head else 1.0
        figures[run] = {
            "tps": 1000 * count * gain * generator.lognormvariate(0, scatter)
        }
    factories.finish_many(figures)
    heads = campaign.runs.filter(cell__version=head)
    if generator.random() < 0.3:
        heads.filter(repeat=1).update(
            validity=generator.choice(("doubtful", "invalid"))
        )
    if generator.random() < 0.2:
        heads.update(hardware=factories.hardware(f"{slug}, another machine"))
        campaign.runs.exclude(cell__version=head).update(
            hardware=factories.hardware(slug)
        )
    return ComparedTable(slug, base, head, "version", "executed")


def published(generator, slug):
    """Figures of which the repeats, their spread, or both are not printed."""
    table = executed(generator, slug, origin=Origin.PUBLISHED)
    Run.objects.filter(campaign__slug=slug).update(validity="", hardware=None)
    summaries = CellSummary.objects.filter(cell__campaign__slug=slug)
    printed = generator.choice(("nothing", "repeats", "range"))
    if printed == "nothing":
        summaries.update(
            n=None, log_variance=None, minimum=F("median"), maximum=F("median")
        )
    elif printed == "repeats":
        summaries.update(
            n=3, log_variance=None, minimum=F("median"), maximum=F("median")
        )
    return ComparedTable(slug, table.base, table.head, "version", "published")


def uploaded(generator, slug):
    """Two commits, measured by one job or by two, in conditions that a side may lack."""
    clients = generator.sample((1, 2, 4, 8, 16), generator.randint(1, 4))
    scatter, count = generator.choice(SCATTERS), generator.choice((1, 2, 3, 5, 8))
    jobs = generator.choice((("one", "one"), ("one", "other")))
    lost = (
        generator.choice(clients)
        if len(clients) > 1 and generator.random() < 0.3
        else None
    )
    runs = []
    for number, job in enumerate(jobs):
        for condition in clients:
            if condition == lost and number == generator.randint(0, 1):
                continue
            level = 1000 * condition * (generator.choice(GAINS) if number else 1.0)
            values = [
                level * generator.lognormvariate(0, scatter) for _repeat in range(count)
            ]
            runs += repeats(
                commit(number),
                campaign=slug,
                levels={"clients": condition},
                job=job,
                tps=values,
            )
    store(runs)
    return ComparedTable(slug, sha(0), sha(1), "revision", "uploaded")
