"""What runs executed on their targets, in an order in which it can be repeated by hand."""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _

from runs.grouping import group_by_key
from runs.models import Campaign, Command, Run
from runs.reports.load_machines import RecordedGenerator
from runs.reports.recorded_runs import RecordedCommand, RecordedRun
from runs.reports.report import Listing
from runs.reports.shell_script import shell_script
from runs.tools.pgbench.versions import release_text

MARK_PREPARED = "mark-prepared"
# Version number and folder of the binaries, as in a frozen plan; the server's first.
PROGRAMS = (
    ("version_num", "bindir"),
    ("client_version_num", "client_bindir"),
    ("", "psql_bindir"),
)
# The fields of a RecordedGenerator, as a frozen plan names them.
GENERATOR = ("name", "base_dir", "client_bindir", "address_of_database")


def read_run(run: Run) -> list[RecordedRun]:
    """The latest attempt of a run, preceded by the making of the shared cluster that it used.

    Three queries. Empty if nothing was executed here: published, uploaded, still queued.
    """
    return _recorded([run])


def read_campaign(campaign: Campaign, *, server: str = "") -> list[RecordedRun]:
    """The finished runs of a campaign in the order of execution. Three queries.

    Only those on one `server` (its slug) if given.
    """
    finished = campaign.runs.filter(state=Run.State.FINISHED, plan__isnull=False)
    if server:
        finished = finished.filter(server__slug=server)
    return _recorded(
        list(
            finished.select_related("cell", "cluster").order_by(
                "started_at", "position"
            )
        )
    )


def _recorded(runs: Sequence[Run]) -> list[RecordedRun]:
    makers = _makers(runs)
    commands = _commands(
        {run.pk for run in runs} | {maker.pk for maker in makers.values()}
    )
    prepared: set[int] = set()
    recorded_runs = []
    for run in runs:
        own_commands = [
            command for command in commands[run.pk] if command.attempt == run.attempt
        ]
        if run.cluster_id and run.cluster_id not in prepared:
            prepared.add(run.cluster_id)
            maker = makers.get(run.cluster_id)
            if maker and not any(
                command.step == MARK_PREPARED for command in own_commands
            ):
                recorded_runs.append(_preparation(maker, commands[maker.pk]))
        recorded_runs.append(_run(run, _title(run), own_commands))
    return [recorded_run for recorded_run in recorded_runs if recorded_run.commands]


def _makers(runs: Sequence[Run]) -> dict[int, Run]:
    """The run that prepared each shared cluster."""
    maker_of = {
        run.cluster.pk: run.cluster.prepared_by_id
        for run in runs
        if run.cluster and run.cluster.prepared_by_id
    }
    maker_runs = Run.objects.filter(
        pk__in=set(maker_of.values()), plan__isnull=False
    ).in_bulk()
    return {
        cluster: maker_runs[maker]
        for cluster, maker in maker_of.items()
        if maker in maker_runs
    }


def _commands(run_ids: Iterable[int]) -> dict[int, list[Command]]:
    """Without the outputs, which may be long."""
    commands = Command.objects.filter(run__in=run_ids).defer("stdout", "stderr")
    ordered = commands.order_by("run_id", "attempt", "ordinal")
    return group_by_key((command.run_id, command) for command in ordered)


def _preparation(maker: Run, commands: Sequence[Command]) -> RecordedRun:
    """The steps of the attempt that made the cluster, up to the mark that it is complete."""
    ends = {
        command.attempt: command.ordinal
        for command in commands
        if command.step == MARK_PREPARED
    }
    attempt = max(ends, default=0)
    preparing_commands = [
        command
        for command in commands
        if command.attempt == attempt and command.ordinal <= ends.get(attempt, 0)
    ]
    return _run(
        maker, f"Preparation of the cluster, in run {maker.pk}", preparing_commands
    )


def _run(run: Run, title: str, commands: Sequence[Command]) -> RecordedRun:
    plan = run.plan or {}
    return RecordedRun(
        title=title,
        base_dir=str(plan.get("base_dir", "")),
        programs=_programs(plan),
        commands=tuple(_command(command) for command in commands) if plan else (),
        generators=tuple(
            RecordedGenerator(*(generator[name] for name in GENERATOR))
            for generator in plan.get("generators", ())
        ),
    )


def _programs(plan: dict[str, object]) -> tuple[tuple[str, str], ...]:
    """Each folder once, with the version if the plan has it."""
    versions_of: dict[str, str] = {}
    for version, folder in PROGRAMS:
        if bindir := str(plan.get(folder) or ""):
            number = plan.get(version)
            versions_of.setdefault(
                bindir, release_text(number) if isinstance(number, int) else "psql"
            )
    return tuple((version, bindir) for bindir, version in versions_of.items())


def _command(command: Command) -> RecordedCommand:
    begin, end = command.started_at, command.finished_at
    return RecordedCommand(
        step=command.step,
        host=command.host,
        argv=tuple(command.argv),
        stdin=command.stdin,
        exit_status=command.exit_status,
        started_at=begin,
        seconds=(end - begin).total_seconds() if begin and end else None,
    )


def _title(run: Run) -> str:
    """Run 7: version 16.14, clients 2, repeat 1."""
    # PostgreSQL sorts the keys of a stored object by length.
    levels = sorted(
        run.cell.levels.items(),
        key=lambda name_and_level: (name_and_level[0] != "version", name_and_level[0]),
    )
    title = ", ".join(f"{name} {level}" for name, level in levels if name != "bindir")
    return f"Run {run.pk}: {title}, repeat {run.repeat}"


def first_run(campaign: Campaign, address: str) -> list[Listing]:
    """What its first finished run executed; nothing where none did."""
    finished_runs = campaign.runs.filter(state=Run.State.FINISHED, plan__isnull=False)
    run = (
        finished_runs.select_related("cell", "cluster")
        .order_by("started_at", "position")
        .first()
    )
    runs = read_run(run) if run else []
    if not runs:
        return []
    script = shell_script(campaign.slug, campaign.title, runs, address=address)
    return [Listing(_("The first run as a shell script"), script)]
