"""A profile of the database's machine by perf, during the load.

The recording is a durable step during the load, like a monitor. If the action `perf` is ticked, the
kernel's permission is widened for the duration of the run, and perf samples the whole machine; else
only PostgreSQL's own processes. perf itself never runs as root. If nothing can be recorded, the run
only lacks its profile, and says so.
"""

from pathlib import Path

from runs.execution.bench import LAST_LINES, Bench
from runs.execution.errors import TargetProblem
from runs.execution.machine import privileged, treating
from runs.execution.machine.monitors import GRACE_SECONDS
from runs.execution.steps.background import Background
from runs.execution.steps.steps import RECORD, StepResult
from runs.wording import gettext_noop as _

STEP = "profile"
REPORT, FOLDED = "perf-report.txt", "perf-folded.txt"
SWITCHES = "perf-switches-folded.txt"
LARGEST = "262144K"
MOST_REPORT_BYTES = 256 * 1024
MOST_STACKS = 20_000
# By exit status of the recording.
NEVER_BEGAN: dict[int | None, str] = {
    127: _("perf is not installed"),
    77: _("the kernel does not let this user sample"),
    78: _("this perf cannot limit its recording"),
}

_RECORD = (Path(__file__).parent / "profile_record.sh").read_text()
_FOLD = (Path(__file__).parent / "profile_fold.sh").read_text()
_REPORT = """
PERF_CONFIG=/dev/null perf report --stdio --no-inline --no-children -n -g none \\
    --percent-limit 0.1 --sort comm,dso,symbol -i "$1/perf.data" 2>/dev/null | head -c "$2"
"""
# Before the load starts, so that its own processes are sampled; at most 15 s.
_WAIT = f"""{RECORD}
tries=0 dir=$1/steps/$2
while [ ! -s "$1/perf.data" ] && ! has_ended && [ $tries -lt 150 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"""


class Profile:
    """The profile of one run: `begin` before the load, `stop` right after it, then `read`."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._recording: Background | None = None
        self._recorded: StepResult | None = None
        self._what = ""
        # The name of a process that perf missed, as both started at the same moment.
        self._nameless = ""

    async def begin(self) -> None:
        """Start sampling, if the plan asks for it. Raises TargetProblem `privilege_missing`."""
        if not self._bench.plan.treatment.profile:
            return
        node = self._bench.database
        sees_all = "perf" in node.privileges
        if sees_all:
            await treating.change(
                self._bench,
                node,
                "perf",
                treating.PARANOIA_FILES,
                privileged.PARANOIA_FOR_PERF,
            )
        seconds = str(int(self._bench.parameters.get("duration", 0) + GRACE_SECONDS))
        argv = ["sh", "-c", _RECORD, STEP, node.directory, seconds, LARGEST]
        argv += [] if sees_all else [self._bench.cluster.data]
        self._recording = self._bench.background(node, STEP, argv)
        self._what = _("the whole machine") if sees_all else _("PostgreSQL's processes")
        self._nameless = "[unknown]" if sees_all else "postgres"
        await self._bench.run("sh", "-c", _WAIT, "wait", node.directory, STEP)

    async def stop(self) -> None:
        """End the sampling, so that nothing after the load is included."""
        if self._recording is None:
            return
        self._recorded = await self._bench.recorded(self._recording, self._note_missing)
        if self._recorded and self._recorded.exit_status not in NEVER_BEGAN:
            text = _(
                "perf sampled %(what)s 99 times a second on each processor while the load was on, "
                "which costs some of the performance: compare with runs that were profiled."
            )
            self._bench.note("profiled", text, what=self._what)

    async def read(self) -> None:
        """Add the report and the folded stacks to the findings."""
        if self._recorded is None:
            return
        folder = self._bench.directory
        report = await self._text(
            "profile-report",
            ["sh", "-c", _REPORT, "report", folder, str(MOST_REPORT_BYTES)],
        )
        argv = ["sh", "-c", _FOLD, "fold", folder, str(MOST_STACKS), self._nameless]
        folded = await self._text("profile-stacks", argv)
        if not folded:
            last_lines = "\n".join(
                self._recorded.stderr.splitlines()[-LAST_LINES:]
            ).strip()
            self._note_missing(last_lines or _("perf recorded nothing"))
            return
        self._bench.keep(REPORT, report)
        self._bench.keep(FOLDED, folded)
        if switches := await self._text("profile-switches", [*argv, "switches.data"]):
            self._bench.keep(SWITCHES, switches)

    async def _text(self, step: str, argv: list[str]) -> str:
        try:
            return (
                await self._bench.step(step, argv, check=False, floor_bytes=0)
            ).stdout
        except TargetProblem as problem:
            if problem.code != "step_timeout":
                raise
            return ""

    def _note_missing(self, printed: object) -> None:
        status = self._recorded.exit_status if self._recorded else None
        reason = NEVER_BEGAN.get(status, printed)
        self._bench.note("profile_missing", _("No profile: %(said)s."), said=reason)
