"""Builders of stored objects for tests: each makes what it needs, and names only what matters."""

import json
from contextlib import contextmanager
from datetime import timedelta
from itertools import count, product

from django.db.models.signals import post_save
from django.utils import timezone

from runs.analysis.summary import summarise
from runs.campaigns.services.drafts import Draft
from runs.loads.services import loads
from runs.loads.services.loads import Brought
from runs.models import (
    Campaign,
    Cell,
    CellSummary,
    Command,
    Configuration,
    Environment,
    HardwareProfile,
    Installation,
    Load,
    Measurement,
    Metric,
    Run,
    RunEvent,
    Scenario,
    Series,
    Server,
    SSHKey,
    Workload,
    WorkloadVersion,
)
from runs.queue.services import artifacts, leases, results

NUMBERS = count(1)

# A real ed25519 public key; nobody has kept its private half.
HOST_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDuATmcdEPUMDzB5lQRyDR4cNhyOOPzyBtaCbKYYlbJU"
)


def version_num(version):
    """160014 of "16.14", 90624 of "9.6.24"."""
    numbers = [int(part) for part in version.split(".")]
    if numbers[0] < 10:
        return (
            numbers[0] * 10000
            + numbers[1] * 100
            + (numbers[2] if len(numbers) > 2 else 0)
        )
    return numbers[0] * 10000 + (numbers[1] if len(numbers) > 1 else 0)


def metric(name="tps", direction="higher", unit="", title=""):
    """A metric; the same one for the same name."""
    made, _created = Metric.objects.get_or_create(
        name=name,
        project=None,
        defaults={"direction": direction, "unit": unit or name, "title": title or name},
    )
    return made


def own_metric(project, name="qps_of_everyone", direction="higher", unit="qps"):
    """A metric of a project; the same one for the same name."""
    fields = {"direction": direction, "unit": unit, "title": name}
    made, _created = Metric.objects.get_or_create(
        project=project, name=name, defaults=fields
    )
    return made


def scenario(slug="fixed-point-read"):
    """A scenario; the same one for the same slug."""
    made, _created = Scenario.objects.get_or_create(slug=slug, defaults={"title": slug})
    return made


def hardware(name="two-core"):
    """A hardware profile; the same one for the same name."""
    made, _created = HardwareProfile.objects.get_or_create(
        fingerprint=name,
        defaults={
            "name": name,
            "cpu_model": "EPYC" if name == "two-core" else f"EPYC {name}",
            "cores": 2,
            "memory_bytes": 8 * 2**30,
        },
    )
    return made


def environment(os_name="Debian 13"):
    """An environment; the same one for the same operating system."""
    made, _created = Environment.objects.get_or_create(
        fingerprint=os_name, defaults={"os_name": os_name, "kernel": "6.12"}
    )
    return made


def ssh_key(name="default"):
    """A key whose private half is not one; the same for the same name."""
    made, _created = SSHKey.objects.get_or_create(
        name=name,
        defaults={"public_key": "ssh-ed25519 AAAA", "private_key_encrypted": b"x"},
    )
    return made


def server(slug="", *, versions=(), state=Server.State.READY, **fields):
    """A server, ready and with a pinned host key, with an installation of each version."""
    slug = slug or f"server-{next(NUMBERS)}"
    defaults = {
        "name": slug,
        "address": "192.0.2.1",
        "username": "postgres",
        "base_dir": "/srv/benchlab",
        "ssh_key": ssh_key(),
        "host_key": HOST_KEY,
        "hardware": hardware(),
        "environment": environment(),
    }
    made = Server.objects.create(slug=slug, state=state, **(defaults | fields))
    for version in versions:
        installation(made, version)
    return made


def installation(on, version="16.14", **fields):
    """An installation on a server; its bindir is that of its version."""
    return Installation.objects.create(
        server=on,
        version=version,
        version_num=version_num(version),
        **({"bindir": f"/usr/lib/postgresql/{version}/bin"} | fields),
    )


def configuration(slug="default", **fields):
    """A configuration without settings."""
    return Configuration.objects.create(
        slug=slug, **({"name": slug, "content_hash": slug} | fields)
    )


def workload(slug="own", **fields):
    """A workload with one version of one script."""
    made = Workload.objects.create(slug=slug, **({"name": slug} | fields))
    script = {"name": "a", "text": "SELECT 1;", "weight": 1}
    WorkloadVersion.objects.create(workload=made, number=1, scripts=[script])
    return made


def load(slug, project):
    """A load of a project, of one statement of pgbench's tables."""
    brought = Brought(statements="SELECT count(*) FROM pgbench_accounts;")
    made = loads.create(name=slug, brought=brought, project=project, by=None)
    Load.objects.filter(pk=made.pk).update(slug=slug)
    made.refresh_from_db()
    return made


def campaign(slug="", *, factors=None, repeats=3, on=None, **fields):
    """A campaign with its cells and queued runs, in the order of its factors.

    `factors` defaults to versions 16.14 and 18.4 with clients 1, 2 and 4.
    """
    slug = slug or f"campaign-{next(NUMBERS)}"
    factors = factors or {"version": ["16.14", "18.4"], "clients": [1, 2, 4]}
    made = Campaign.objects.create(
        slug=slug,
        factors=factors,
        repeats=repeats,
        **({"title": slug, "scenario": scenario()} | fields),
    )
    cells = [
        _cell(made, ordinal, dict(zip(factors, levels, strict=True)))
        for ordinal, levels in enumerate(product(*factors.values()), start=1)
    ]
    Cell.objects.bulk_create(cells)
    Run.objects.bulk_create(
        each
        for place, of in enumerate(cells)
        for each in _runs(of, place * repeats, repeats, on)
    )
    return made


def cell(of, levels, *, repeats=3, on=None, **fields):
    """A cell of a campaign with its queued runs."""
    made = _cell(of, of.cells.count() + 1, levels, **fields)
    made.save()
    before = of.runs.count() if repeats else 0
    Run.objects.bulk_create(_runs(made, before, repeats, on))
    return made


def _cell(of, ordinal, levels, **fields):
    version = levels.get("version", "")
    known = {
        "key": json.dumps(levels, sort_keys=True),
        "version": version,
        "version_num": version_num(version) if version else None,
    }
    return Cell(campaign=of, ordinal=ordinal, levels=levels, **(known | fields))


def _runs(cell, before, repeats, on):
    of = cell.campaign
    return [
        Run(
            campaign=of,
            cell=cell,
            repeat=repeat,
            position=before + repeat,
            origin=of.origin,
            server=on,
        )
        for repeat in range(1, repeats + 1)
    ]


def run(of=None, *, repeat=1, **fields):
    """A queued run of a cell (of a new one, if none is given)."""
    of = of or cell(
        campaign(factors={"version": []}), {"version": "16.14", "clients": 1}, repeats=0
    )
    return Run.objects.create(
        campaign=of.campaign,
        cell=of,
        repeat=repeat,
        **(
            {"position": of.campaign.runs.count() + 1, "origin": of.campaign.origin}
            | fields
        ),
    )


def artifact(run, data):
    """A file of a run, which is really there."""
    for _data, error in artifacts.store_all([(run.pk, data)]):
        raise error
    return run.artifacts.get(name=data.name)


def finish(which, *, seconds=10, **values):
    """A run that took this many seconds and measured these values: finish(run, tps=1000)."""
    now = timezone.now()
    which.state = Run.State.FINISHED
    which.started_at, which.finished_at = now - timedelta(seconds=seconds), now
    which.save()
    for name, value in values.items():
        Measurement.objects.create(run=which, metric=metric(name), value=value)
        summary(which.cell, name)
    return which


def summary(of, name):
    """The stored summary of a metric over the finished runs of a cell, recomputed."""
    values = Measurement.objects.filter(run__cell=of, metric__name=name)
    fields = vars(summarise(list(values.values_list("value", flat=True))))
    made, _created = CellSummary.objects.update_or_create(
        cell=of, metric=metric(name), defaults=dict(fields)
    )
    return made


def finish_all(of, *, gain=None, noise=0.002, **fields):
    """Finish every run of a campaign: tps 1000 a client, times the gain of its version."""
    values = {}
    for which in of.runs.select_related("cell").order_by("pk"):
        clients, version = which.cell.levels.get("clients", 1), which.cell.version
        # Each cell has its runs in another order, so that no round is the better one for all.
        place = (which.repeat + which.cell.ordinal) % of.repeats - (of.repeats - 1) / 2
        factor = (gain or {}).get(version, 1.0) * (1 + noise * place)
        values[which] = {"tps": 1000.0 * clients * factor}
    finish_many(values, **fields)
    of.state = Campaign.State.FINISHED
    of.save()
    return of


def finish_many(values_of, *, seconds=10, **values):
    """`finish` for many runs of one campaign in a few statements: {run: {"tps": 1000}}."""
    now, metrics, measured = timezone.now(), {}, []
    for left, (which, own) in enumerate(values_of.items(), start=-len(values_of)):
        ended = now + timedelta(milliseconds=left)
        which.state = Run.State.FINISHED
        which.started_at, which.finished_at = ended - timedelta(seconds=seconds), ended
        for name, value in (own | values).items():
            metrics[name] = metrics.get(name) or metric(name)
            measured.append(Measurement(run=which, metric=metrics[name], value=value))
    Run.objects.bulk_update(values_of, ["state", "started_at", "finished_at"])
    Measurement.objects.bulk_create(measured)
    of_cells = {}
    for each in measured:
        of_cells.setdefault((each.run.cell_id, each.metric), []).append(each.value)
    CellSummary.objects.bulk_create(
        CellSummary(cell_id=cell_id, metric=of_metric, **vars(summarise(values)))
        for (cell_id, of_metric), values in of_cells.items()
    )


def story(which):
    """Everything else that a run leaves: event, command, series and settings."""
    RunEvent.objects.create(
        run=which, from_state="queued", to_state="claimed", code="claimed"
    )
    Command.objects.create(
        run=which,
        attempt=1,
        ordinal=1,
        step="measure",
        host="192.0.2.1",
        argv=["pgbench", "-n"],
    )
    Series.objects.create(
        run=which, name="tps", unit="tps", start=1, interval=1, values=[1.0, None]
    )
    which.settings = results.snapshot(
        settings={"work_mem": {"setting": "4096", "unit": "kB"}}
    )
    which.save()
    return which


def draft(server, **changed):
    """A short reading campaign on all that a server has; `campaigns.create` queues it."""
    given = {
        "title": "short",
        "scenario": "fixed-point-read",
        "server": server,
        "installations": list(server.installations.all()),
        "levels": {"clients": [1]},
        "parameters": {"scale": 1, "duration": 1},
        "repeats": 1,
        # On a busy machine every run is doubtful: how many there are must not depend on that.
        "remeasures": 0,
    }
    return Draft(**(given | changed))


@contextmanager
def campaigns_made():
    """The project of each campaign as it was when its row was written, in order."""
    projects = []

    def note(instance, created, **_signal):
        if created:
            projects.append(instance.project)

    post_save.connect(note, sender=Campaign)
    try:
        yield projects
    finally:
        post_save.disconnect(note, sender=Campaign)


def pulse(run_id, token):
    """The order that a run's worker hears with its sign of life."""
    return leases.pulse([(run_id, token)])[run_id, token]
