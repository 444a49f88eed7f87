"""What a bisection is asked: a verdict, builds in the order of their history, and what to measure.

Everything that a caller may get wrong is looked at here, before anything is queued.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.selectors.projects import Reader
from runs.analysis.inference import DEFAULT_EFFECT
from runs.bisections.selectors import bisections
from runs.campaigns.services.campaign_limits import NARROWEST, REPEATS
from runs.campaigns.services.designs import resolve
from runs.campaigns.services.drafts import Draft
from runs.campaigns.services.estimates import estimate
from runs.compare.selectors.address import head_and_base
from runs.compare.selectors.address.head_and_base import BadSide, NoBaseline, Side
from runs.compare.selectors.judge import against_history
from runs.compare.selectors.judge.gate import Criteria, SideVerdict, VerdictRow
from runs.execution.machine.treatment import UNTREATED, Treatment
from runs.fingerprints import fingerprint
from runs.models import Bisection, Configuration, Installation, Server
from runs.scenarios import registry
from runs.scenarios.definition import Level, Scenario
from runs.servers.services import builds
from runs.shared.errors import Fault, Problem, Refused, ServiceError

MOST_BUILDS = 1000
# Digits of a commit that is named whole: only such a one is built.
FULL = 40


@dataclass(frozen=True)
class Wish:
    """What somebody asks for. None: left out, to be found from the verdict and the server.

    `base` and `head` are named as in compare/; `bindirs` or `commits` in the order of the history;
    `ignore` has the conditions that may differ between the sides. `wait_seconds`: cancel it when
    nobody has asked for the answer for so long.
    """

    campaign: str
    base: str
    head: str
    server: Server
    metrics: Sequence[str] = ()
    effect: float = DEFAULT_EFFECT
    ignore: Sequence[str] = ()
    bindirs: Sequence[str] | None = None
    commits: Sequence[str] = ()
    scenario: str = ""
    levels: Mapping[str, Sequence[Level]] | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)
    configuration: Configuration | None = None
    generators: Sequence[Server] = ()
    cluster_servers: Sequence[Server] = ()
    treatment: Treatment = UNTREATED
    repeats: int = REPEATS
    most_repeats: int = 20
    wait_seconds: int | None = None


@dataclass(frozen=True)
class ToBuild:
    """A commit that has no installation yet, on a server that may build it."""

    commit: str


@dataclass(frozen=True)
class Question:
    """What is to be settled: `builds` from the base's to the head's, and what is measured."""

    wish: Wish
    verdict: SideVerdict
    scenario: Scenario
    builds: Sequence[Installation | ToBuild]
    levels: Mapping[str, Sequence[Level]]


def question(wish: Wish, *, reader: Reader) -> Question:
    """A wish with everything found. Raises Refused with the place of each fault.

    Raises ServiceError `nothing_to_decide` unless the verdict is red or undecided, and
    PermissionDenied to who may not queue in the head's project.
    """
    verdict = _verdict(wish, reader)
    permissions.require(reader, Right.QUEUE, verdict.head.campaign.project)
    if verdict.exit_code not in (1, 2) and verdict.overall != "no_sign":
        message = _("The verdict is “%(verdict)s”: there is nothing to settle.")
        message %= {"verdict": verdict.overall}
        raise ServiceError("nothing_to_decide", message)
    scenario = _scenario(wish, verdict)
    levels = _levels(verdict, scenario) if wish.levels is None else wish.levels
    return Question(wish, verdict, scenario, _installations(wish, verdict), levels)


def problems(question: Question) -> Sequence[Problem]:
    """What stands against the first step; of builds that are not there yet nothing is known."""
    present = [build for build in question.builds if isinstance(build, Installation)]
    if not present:
        return ()
    ends = [
        build
        for build in (question.builds[0], question.builds[-1])
        if isinstance(build, Installation)
    ]
    return estimate(resolve(draft(unsaved(question), ends or present[:1]))).problems


def _verdict(wish: Wish, reader: Reader) -> SideVerdict:
    try:
        base, head = head_and_base.both(
            wish.base, wish.head, campaign=wish.campaign, reader=reader
        )
    except BadSide as error:
        raise _refused(error.parameter, error.code, error.message) from error
    except NoBaseline as first:
        message = _("There is nothing yet to compare it with.")
        raise _refused("base", "baseline_made", message) from first
    _check_base(base, head)
    criteria = Criteria(
        metrics=tuple(wish.metrics), effect=wish.effect, ignore=tuple(wish.ignore)
    )
    return against_history.compared(base, head, criteria)


def _check_base(base: Side, head: Side) -> None:
    """Who may read the head's project reads what the base is called: it must be no secret."""
    project = base.campaign.project
    if (
        project is not None
        and not project.is_public
        and project != head.campaign.project
    ):
        message = _(
            "The base belongs to a private project, and readers of the head's would see its name."
        )
        remedy = _("Take a base of the same project, or of a public one.")
        raise _refused("base", "private_base", message, remedy)


def _scenario(wish: Wish, verdict: SideVerdict) -> Scenario:
    slug = wish.scenario or verdict.head.campaign.scenario.slug
    try:
        scenario = registry.get(slug, wish.levels or {})
    except KeyError as error:
        message = _(
            "BenchLab cannot run the scenario %(scenario)s: name one that it can."
        )
        raise _refused(
            "scenario", "unknown_scenario", message % {"scenario": slug}
        ) from error
    own_metrics = {metric.name for metric in scenario.metrics}
    known_parameters = {parameter.name for parameter in scenario.parameters}
    faults = [
        Fault(
            f"/parameters/{name}",
            "unknown_parameter",
            _("This scenario has no parameter %(name)s.") % {"name": name},
        )
        for name in sorted(set(wish.parameters) - known_parameters)
    ]
    faults += [
        Fault(
            f"/metric/{position}",
            "unknown_metric",
            _("%(scenario)s does not measure %(name)s.")
            % {"scenario": slug, "name": name},
        )
        for position, name in enumerate(wish.metrics)
        if name not in own_metrics
    ]
    if faults:
        raise Refused("contradicts", faults)
    return scenario


def _levels(verdict: SideVerdict, scenario: Scenario) -> dict[str, Sequence[Level]]:
    """The levels of the row that lost most, as far as the scenario has such factors."""
    rows = [row for row in verdict.rows if row.counts and row.is_asked]
    rows.sort(key=_urgency)
    levels = rows[0].levels if rows else {}
    factor_of = {factor.name: factor for factor in scenario.factors}
    return {
        name: [level]
        for name, level in levels.items()
        if name in factor_of and factor_of[name].accepts(level)
    }


def _urgency(row: VerdictRow) -> tuple[bool, float]:
    inference = row.comparison
    gain = (
        (inference.ratio or 1.0)
        if row.metric.direction == "higher"
        else 1 / (inference.ratio or 1.0)
    )
    return inference.verdict != "slower", gain


def _installations(wish: Wish, verdict: SideVerdict) -> list[Installation | ToBuild]:
    present = list(Installation.objects.filter(server=wish.server, removed_at=None))
    builds: list[Installation | ToBuild] = []
    if wish.bindirs is not None:
        installations = _installations_in(wish, present)
        _check_order(installations, verdict)
        builds += installations
    else:
        builds += [_side_build("base", verdict.base, present, wish)]
        builds += [
            _the_one(
                bisections.find_by_commit(sha, present),
                f"commits/{position}",
                sha,
                present,
                wish,
                sha,
            )
            for position, sha in enumerate(wish.commits)
        ]
        builds.append(_side_build("head", verdict.head, present, wish))
    if len(set(builds)) < len(builds):
        message = _("Two of the commits have the same installation.")
        raise _refused(
            "commits" if wish.bindirs is None else "bindirs", "same_build", message
        )
    return builds


def _installations_in(
    wish: Wish, present: Sequence[Installation]
) -> list[Installation]:
    folders = {installation.bindir: installation for installation in present}
    faults = [
        Fault(
            f"/bindirs/{position}",
            "installation_missing",
            _("There is no installation in %(bindir)s on %(server)s.")
            % {"bindir": bindir, "server": wish.server.name},
            _known(present),
        )
        for position, bindir in enumerate(wish.bindirs or ())
        if bindir not in folders
    ]
    if faults:
        raise Refused("contradicts", faults)
    return [folders[bindir] for bindir in wish.bindirs or ()]


def _check_order(installations: Sequence[Installation], verdict: SideVerdict) -> None:
    """Folders that carry a commit must not carry that of the other side."""
    for position, side in ((0, verdict.head), (len(installations) - 1, verdict.base)):
        sha = bisections.commit_of(side)
        if sha and bisections.find_by_commit(sha, [installations[position]]):
            words = {"bindir": installations[position].bindir, "sha": sha[:12]}
            message = (
                _("%(bindir)s is a build of %(sha)s, which is the other side.") % words
            )
            raise _refused(f"bindirs/{position}", "wrong_order", message)


def _side_build(
    name: str, side: Side, present: Sequence[Installation], wish: Wish
) -> Installation | ToBuild:
    side_installations = bisections.find_by_side(side, present)
    return _the_one(
        side_installations, name, side.label, present, wish, bisections.commit_of(side)
    )


def _the_one(
    candidates: Sequence[Installation],
    field: str,
    name: str,
    present: Sequence[Installation],
    wish: Wish,
    commit: str,
) -> Installation | ToBuild:
    """The only one, or what is to be built. Raises Refused if there is neither, or more."""
    if len(candidates) == 1:
        return candidates[0]
    if not candidates and len(commit) >= FULL and builds.may_build(wish.server):
        return ToBuild(commit)
    words = {"server": wish.server.name, "name": name}
    if candidates:
        message = (
            _("%(server)s has several installations of %(name)s: name the folders.")
            % words
        )
        raise _refused(
            field,
            "ambiguous_build",
            message,
            ", ".join(installation.bindir for installation in candidates),
        )
    message = (
        _("%(server)s has no installation of %(name)s in a folder that carries it.")
        % words
    )
    raise _refused(field, "installation_missing", message, _known(present))


def _known(present: Sequence[Installation]) -> str:
    folders = ", ".join(installation.bindir for installation in present[:20])
    return _("It has: %(folders)s.") % {"folders": folders or _("none")}


def _refused(field: str, code: str, message: str, remedy: str = "") -> Refused:
    return Refused("contradicts", [Fault(f"/{field}", code, message, remedy)])


def unsaved(question: Question) -> Bisection:
    """The bisection of a question, not stored."""
    side_verdict, wish = question.verdict, question.wish
    stored = {
        "base": side_verdict.base.text,
        "head": side_verdict.head.text,
        "base_sha": bisections.commit_of(side_verdict.base),
        "head_sha": bisections.commit_of(side_verdict.head),
        "metrics": list(wish.metrics),
        "effect": side_verdict.effect,
        "ignore": sorted(wish.ignore),
    }
    # Each step adds its title and installations.
    draft = Draft(
        title="",
        scenario=question.scenario.slug,
        server=wish.server,
        installations=(),
        levels=question.levels,
        parameters=wish.parameters,
        repeats=wish.repeats,
        most_repeats=wish.most_repeats,
        configuration=wish.configuration,
        generators=wish.generators,
        cluster_servers=wish.cluster_servers,
        treatment=wish.treatment,
    ).to_json()
    builds = _builds(question)
    return Bisection(
        project=side_verdict.head.campaign.project,
        campaign=side_verdict.head.campaign,
        server=wish.server,
        asked=stored,
        draft=draft,
        builds=builds,
        high=len(builds) - 1,
        wait_seconds=wish.wait_seconds,
        awaited_at=None if wish.wait_seconds is None else timezone.now(),
        fingerprint=fingerprint([wish.server.pk, stored, draft, builds]),
    )


def _builds(question: Question) -> list[dict[str, Any]]:
    """The builds as they are kept: with the commits that were named, else those of the folders."""
    between = question.wish.commits or [
        _commit_in(build) for build in question.builds[1:-1]
    ]
    ends = [
        bisections.commit_of(side) or _commit_in(build)
        for side, build in (
            (question.verdict.base, question.builds[0]),
            (question.verdict.head, question.builds[-1]),
        )
    ]
    return [
        {"installation": None, "bindir": "", "commit": build.commit}
        if isinstance(build, ToBuild)
        else {"installation": build.pk, "bindir": build.bindir, "commit": commit}
        for build, commit in zip(
            question.builds, [ends[0], *between, ends[1]], strict=True
        )
    ]


def _commit_in(build: Installation | ToBuild) -> str:
    return (
        build.commit
        if isinstance(build, ToBuild)
        else bisections.commit_in(build.bindir)
    )


def draft(bisection: Bisection, installations: Sequence[Installation]) -> Draft:
    """A step's draft: whole rounds, with more of them while its verdict is undecided."""
    # A bisection of an earlier BenchLab has these three in other columns only.
    first = {"title": "", "server": bisection.server_id, "installations": []}
    draft = Draft.from_json(first | bisection.draft)
    scenario = registry.get(draft.scenario, draft.levels)
    parameters = {
        parameter.name: parameter.default for parameter in scenario.parameters
    }
    levels: dict[str, Sequence[Level]] = {
        factor.name: list(factor.default) for factor in scenario.factors
    }
    levels |= draft.levels
    followed = bisection.followed.get("levels", {})
    levels |= {name: [followed[name]] for name in levels if name in followed}
    effect = float(bisection.asked["effect"]) / 100
    return replace(
        draft,
        title=_title(bisection),
        installations=installations,
        levels=levels,
        parameters={**parameters, **draft.parameters},
        # The verdict decides on further rounds (repeats.add_round); this makes each a look.
        wanted_half_width=max(effect / 2, NARROWEST),
    )


def _title(bisection: Bisection) -> str:
    """Titles of campaigns are data, and in English like others that nobody typed."""
    low, high = (
        bisections.name_of(bisection.builds[position])
        for position in (bisection.low, bisection.high)
    )
    return f"{high} against {low} ({bisection.campaign.slug})"[:200]
