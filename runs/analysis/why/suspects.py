"""What differs between two sides, and what points to each difference.

Every difference is listed, and none is excluded. Counters and plans only rank: one that moved is a
sign of it, none that moved is no sign, and what no record could show is not judged. A rank is
evidence times reach, no probability; what it says is a fact, and never that something cannot act.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, Self

from runs.analysis.why import counters, distributions, families, repairs
from runs.analysis.why.account import Account
from runs.analysis.why.counters import Moved, Name
from runs.analysis.why.families import Family
from runs.analysis.why.parts import Difference
from runs.postgresql_settings.catalogue import setting
from runs.postgresql_settings.comparing import Shown

# More than this many are tried by halves first.
MOST_SINGLE = 6
# At most this many are given to A besides.
MOST_GIVEN = 3
BLOATED = 1.2
MOST_SMALL = 1024 * 1024
# A counter of a single round may have moved by chance.
LEAST_ROUNDS = 2
_OF_PLANS = frozenset({"plans", "parallel", "jit"})
State = Literal["acts", "no_sign", "not_judged"]

# What makes a newer version behave as one without the setting.
NEUTRAL: Mapping[str, str] = {
    "backend_flush_after": "0",
    "checkpoint_flush_after": "0",
    "compute_query_id": "off",
    "enable_async_append": "off",
    "enable_distinct_reordering": "off",
    "enable_gathermerge": "off",
    "enable_group_by_reordering": "off",
    "enable_incremental_sort": "off",
    "enable_memoize": "off",
    "enable_parallel_append": "off",
    "enable_parallel_hash": "off",
    "enable_partition_pruning": "off",
    "enable_presorted_aggregate": "off",
    "enable_self_join_elimination": "off",
    "hash_mem_multiplier": "1.0",
    "io_combine_limit": "8kB",
    "io_method": "sync",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
}
# Names and places, which are others for each cluster.
_PLACES = "File Locations"
_PRESET = "Preset Options"
_PRESET_KINDS = {"data_checksums": "checksums"}
# Of a preset only these are of the cluster or the build; others follow from them.
_OF_CLUSTER = ("wal_segment_size", "data_checksums", "server_encoding")
_OF_BUILD = ("block_size", "wal_block_size", "segment_size", "debug_assertions")

# Of these a version, or an older record, lacks names: what one side alone has says nothing.
_BY_SHARED_NAMES = frozenset({"database", "machine"})
# Of a relation that one side lacks, these follow from it.
_OF_RELATIONS = frozenset(
    {
        "column",
        "constraint",
        "freshness",
        "generated",
        "identity",
        "distribution",
        "partition",
    }
)
# Of these a recorded value scatters, or says how another is made.
UNCOMPARED = frozenset({"function_definition", "statistics_definition"})
# By which part of the plan of a run a kind of difference is put back.
PLAN_PARTS: Mapping[str, tuple[str, ...]] = {
    "setup": ("setup",),
    "treatment": ("treatment",),
    "initdb": ("initdb",),
}


@dataclass(frozen=True)
class Side:
    """One side: its version, its settings by effective value, and the accounts of its runs.

    `further` is what else is recorded, by kind, then by name. `of_role` are the settings that a
    role or the database sets, whatever the cluster's file says. `measured` is when its first run
    began and its last one ended.
    """

    major: str
    version_num: int
    settings: Mapping[str, Shown]
    accounts: Sequence[Account] = ()
    query_mode: str = "simple"
    further: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    of_role: frozenset[str] = frozenset()
    number_of_runs: int = 0
    measured: tuple[datetime, datetime] | None = None

    @property
    def counted(self) -> list[dict[Name, float]]:
        """The counters of each run, per transaction."""
        return [
            counters.count_per_transaction(account, self.version_num)
            for account in self.accounts
        ]


# Fields of a difference that JSON keeps as lists.
_TUPLES = (
    "plan_parts",
    "statements",
    "statements_forth",
    "undefined",
    "undefined_forth",
    "members",
    "evidence",
    "looked",
    "unseen",
    "parts",
)


@dataclass(frozen=True)
class Suspect:
    """A difference of `b` from `a`.

    `put_back` are the settings that give `b` what `a` has, `plan_parts` the parts of the plan of a
    run that do (`setup`, `treatment`, `initdb`), `statements` what is executed after the set-up of
    `b`; all empty where nothing can. `members` are the keys of those that are put back together,
    `put_forth` and `statements_forth` give A what B has. `undefined` are the functions for the want
    of which `b` cannot get what `a` has, and `undefined_forth` those that A is in want of.
    `evidence` are codes of what points to it, `moved` the counters that do. `looked` are the
    counters (view.column) and codes of plans that were looked at, `unseen` the codes of what was
    not. `parts` are those of the time that it can reach; empty is all.
    """

    kind: str
    name: str
    a: str
    b: str
    put_back: Mapping[str, str] = field(default_factory=dict)
    put_forth: Mapping[str, str] = field(default_factory=dict)
    plan_parts: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    statements_forth: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    undefined_forth: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    state: State = "not_judged"
    evidence: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    looked: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    rank: float = 0.0

    @property
    def is_candidate(self) -> bool:
        """Whether putting it back can be tried."""
        return bool(self.put_back or self.plan_parts or self.statements)

    @property
    def is_of_data(self) -> bool:
        """Whether it is a part of what the set-up makes."""
        return self.kind in repairs.REPAIRS

    @property
    def can_be_given(self) -> bool:
        """Whether A can get what B has of it."""
        if self.kind == "setting":
            return bool(self.a)
        return not self.statements or bool(self.statements_forth)

    @property
    def settings_of_b(self) -> dict[str, str]:
        """The settings that give A what B has."""
        return {self.name: self.b} if self.kind == "setting" else dict(self.put_forth)

    @property
    def key(self) -> str:
        """Its name among all: an arm is called so."""
        return (
            self.name if self.kind == "setting" else f"{self.kind} {self.name}".strip()
        )

    def to_json(self) -> dict[str, Any]:
        """As an ablation keeps it: `name` is that of its arm."""
        return {**asdict(self), "name": self.key, "title": self.name}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """From what `to_json` gave, also that of earlier versions, which lacks later fields."""
        names = {suspect_field.name for suspect_field in fields(cls)}
        known_fields = {name: value for name, value in kept.items() if name in names}
        for name in _TUPLES:
            known_fields[name] = tuple(known_fields.get(name, ()))
        known_fields["moved"] = tuple(
            Moved(**counter) for counter in known_fields.get("moved", ())
        )
        known_fields["name"] = kept.get("title", kept["name"])
        return cls(**known_fields)


@dataclass(frozen=True)
class Facts:
    """What the records of both sides have; `views` are those that all of them have read.

    `oldest` is the older version, `rounds` the runs of the side that has fewer. `has_functions`:
    the database has functions of its own, `has_nested`: plans within them were recorded.
    """

    plans: tuple[str, str] | None
    has_jit: bool
    has_functions: bool
    has_nested: bool
    moved: Sequence[Moved]
    majors: tuple[str, str]
    views: frozenset[str]
    oldest: int
    rounds: int

    @property
    def same_plans(self) -> bool:
        """Known to be the same on both sides."""
        return self.plans is not None and self.plans[0] == self.plans[1]

    def differ_in(self, node_type: str) -> bool:
        """Whether one side's plans are known to have such a node, and the other's not."""
        return (
            self.plans is not None
            and len({node_type in plans for plans in self.plans}) > 1
        )

    def has(self, view: str) -> bool:
        """Whether a view was read, which a run of an earlier BenchLab may not have done."""
        return view in ALWAYS_READ or view in self.views


# Views that every record has where the version has them.
ALWAYS_READ = frozenset(
    {
        "pg_stat_database",
        "pg_stat_user_tables",
        "pg_statio_user_tables",
        "pg_stat_user_indexes",
        "pg_statio_user_indexes",
        "checkpoints",
        "pg_stat_bgwriter",
        "pg_stat_wal",
        "pg_stat_io",
    }
)


def plan_trials(chosen: Sequence[Suspect]) -> list[Suspect]:
    """What an ablation puts back: each of these, or their halves where there are many.

    A half never has what the other one contains, as the set-up of the data does its objects.
    """
    if len(chosen) <= MOST_SINGLE:
        return list(chosen)
    if any(suspect.kind == "setup" for suspect in chosen):
        chosen = [suspect for suspect in chosen if not suspect.statements]
    return list(chosen) if len(chosen) <= MOST_SINGLE else halves(chosen)


def given(tried: Sequence[Suspect]) -> list[Suspect]:
    """Those that A is given, too: few, and what A's version has. It shows which one suffices."""
    if not 2 <= len(tried) <= MOST_GIVEN:
        return []
    return [suspect for suspect in tried if suspect.can_be_given]


def number_of_arms(tried: Sequence[Suspect]) -> int:
    """A, B, B again, each of these, all of them where there are several, and A given some."""
    return 3 + len(tried) + (len(tried) > 1) + len(given(tried))


def halves(candidates: Sequence[Suspect]) -> list[Suspect]:
    """Two suspects, each of which puts half of these back: those of the higher ranks, the others.

    Causes that act in the same way have like ranks, and stay together.
    """
    middle = (len(candidates) + 1) // 2
    return [
        _group(str(number), members)
        for number, members in enumerate(
            (candidates[:middle], candidates[middle:]), start=1
        )
    ]


def _group(name: str, members: Sequence[Suspect]) -> Suspect:
    return Suspect(
        "group",
        name,
        "",
        "",
        put_back={
            name: text for member in members for name, text in member.put_back.items()
        },
        put_forth={
            name: text
            for member in members
            if member.can_be_given
            for name, text in member.settings_of_b.items()
        },
        statements=tuple(
            statement for member in members for statement in member.statements
        ),
        statements_forth=tuple(
            statement for member in members for statement in member.statements_forth
        ),
        undefined_forth=tuple(
            dict.fromkeys(name for member in members for name in member.undefined_forth)
        ),
        plan_parts=tuple(
            dict.fromkeys(part for member in members for part in member.plan_parts)
        ),
        members=tuple(member.key for member in members),
    )


def find(a: Side, b: Side, difference: Difference | None) -> list[Suspect]:
    """All differences by rank: signs first, then what is not judged, then what shows no sign."""
    facts = facts_of(a, b)
    settings = list(_settings(a, b))
    repartitioned = _repartitioned(a, b)
    further = _further(a, b, {setting.name for setting in settings}, repartitioned)
    others = _others(a, b, facts, repartitioned)
    judged = [
        _judged(suspect, facts, difference)
        for suspect in (*settings, *further, *others)
    ]
    objects = [suspect.rank for suspect in judged if suspect.is_of_data]
    if objects:
        # The set-up of the data comes after the first of what it makes.
        judged = [
            replace(suspect, rank=min(suspect.rank, 0.99 * max(objects)))
            if suspect.kind == "setup"
            else suspect
            for suspect in judged
        ]
    return sorted(
        judged, key=lambda suspect: (-suspect.rank, suspect.kind, suspect.name)
    )


def facts_of(a: Side, b: Side) -> Facts:
    """What the loads of both sides did."""
    accounts = [*a.accounts, *b.accounts]
    plans = (_plans_of(a), _plans_of(b))
    rounds = min(len(a.accounts), len(b.accounts))
    return Facts(
        plans=plans if all(plans) else None,
        has_jit=any("JIT" in plan for account in accounts for plan in account.plans),
        has_functions=any(account.objects.get("function") for account in accounts),
        majors=(a.major, b.major),
        views=frozenset.intersection(*(account.views for account in accounts))
        if accounts
        else frozenset(),
        has_nested=any(account.has_nested for account in accounts),
        moved=counters.moved(a.counted, b.counted, (a.version_num, b.version_num)),
        oldest=min(a.version_num, b.version_num),
        rounds=rounds,
    )


def _plans_of(side: Side) -> str:
    """The forms of a side's plans, the same for the same plans; empty if none is known."""
    of_each = {
        " | ".join(form(plan.get("Plan", {})) for plan in account.plans)
        for account in side.accounts
        if account.plans
    }
    return " or ".join(sorted(of_each))


def form(node: Mapping[str, Any]) -> str:
    """A plan without its figures and values, in words that all versions have."""
    node_fields = (
        "Node Type",
        "Join Type",
        "Relation Name",
        "Index Name",
        "Workers Planned",
    )
    node_text = " ".join(str(node[name]) for name in node_fields if name in node)
    below = ", ".join(form(child) for child in node.get("Plans", ()))
    return f"{node_text} ({below})" if below else node_text


def _settings(a: Side, b: Side) -> Iterator[Suspect]:
    """A setting that one side lacks is a difference where somebody set it, or where its default is
    known to act (`NEUTRAL`); otherwise it is a part of the version."""
    for name in sorted(a.settings.keys() | b.settings.keys()):
        a_setting, b_setting = a.settings.get(name), b.settings.get(name)
        catalogued = setting(name, b.major) or setting(name, a.major)
        if catalogued is None or catalogued.category.startswith((_PLACES, _PRESET)):
            continue
        if a_setting is not None and b_setting is not None:
            if a_setting.amount == b_setting.amount:
                continue
            if a.major == b.major and a_setting.is_default and b_setting.is_default:
                continue  # Nobody chose it: it follows from another, as wal_buffers does.
            put_back = {name: a_setting.text}
        elif b_setting is not None:
            neutral = NEUTRAL.get(name)
            if neutral == b_setting.text or (neutral is None and b_setting.is_default):
                continue
            put_back = {} if neutral is None else {name: neutral}
        elif a_setting is not None and not a_setting.is_default:
            put_back = {}
        else:
            continue
        is_of_role = name in a.of_role or name in b.of_role
        resets = [
            repairs.list_setting_resets(name, side.further.get("default", {}))
            if _has_setup(a, b)
            else ()
            for side in (a, b)
        ]
        yield Suspect(
            "setting",
            name,
            a_setting.text if a_setting is not None else "",
            b_setting.text if b_setting is not None else "",
            # The file of settings does not count where a role or the database says otherwise.
            put_back={} if is_of_role and not any(resets) else put_back,
            statements=resets[1] if put_back else (),
            statements_forth=resets[0],
        )


def _has_setup(a: Side, b: Side) -> bool:
    """Whether the load is somebody's own, whose set-up further statements can follow."""
    return bool(a.further.get("setup") or b.further.get("setup"))


def _further(
    a: Side, b: Side, settings: Collection[str], repartitioned: Collection[str]
) -> Iterator[Suspect]:
    """What else is recorded on both sides by kind and name, and differs.

    `settings` are the names of those that differ, `repartitioned` what `_repartitioned` gives.
    """
    relations = [set(side.further.get("relation", {})) for side in (a, b)]
    one_sided = relations[0] ^ relations[1]
    generated = [side.further.get("generated", {}) for side in (a, b)]
    regenerated = {
        name
        for name in generated[0].keys() | generated[1].keys()
        if generated[0].get(name) != generated[1].get(name)
    }
    for kind in sorted(a.further.keys() & b.further.keys() - UNCOMPARED):
        of_a, of_b = a.further[kind], b.further[kind]
        names = (
            of_a.keys() & of_b.keys()
            if kind in _BY_SHARED_NAMES
            else of_a.keys() | of_b.keys()
        )
        for name in sorted(names):
            relation = name.partition(".")[0]
            if kind in _OF_RELATIONS and relation in one_sided:
                continue
            if kind in _OF_PARTS and relation in repartitioned:
                continue  # That follows from the key of what they are parts of.
            if kind == "column" and name in regenerated:
                continue  # The expression is listed.
            if kind == "default" and name.partition(" (")[0] in settings:
                continue  # The setting itself is listed.
            value_of_a, value_of_b = of_a.get(name, ""), of_b.get(name, "")
            if not _is_same(kind, value_of_a, value_of_b):
                yield _single(kind, name, a, b)


_OF_PARTS = frozenset({"partition", "distribution", "freshness"})
_PART_OF = re.compile(r"PARTITION OF (\S+) ")


def _repartitioned(a: Side, b: Side) -> set[str]:
    """The partitions of tables that have another key on both sides."""
    partitions = [side.further.get("partition", {}) for side in (a, b)]
    tables = {
        name.removesuffix(" partitioned")
        for name in partitions[0].keys() | partitions[1].keys()
        if name.endswith(" partitioned")
        and partitions[0].get(name) != partitions[1].get(name)
    }
    return {
        name
        for of_side in partitions
        for name, text in of_side.items()
        if (match := _PART_OF.match(text)) and match[1] in tables
    }


def _is_same(kind: str, a: str, b: str) -> bool:
    if kind == "distribution":
        return distributions.are_alike(a, b)
    return a == b


def _single(kind: str, name: str, a: Side, b: Side) -> Suspect:
    """A difference of something that has a name on both sides."""
    of_a, of_b = (side.further[kind].get(name, "") for side in (a, b))
    put_back = put_forth = repairs.Remedy()
    if _has_setup(a, b):
        back = repairs.Change(name, of_b, of_a, a.further, b.further)
        change = repairs.Change(name, of_a, of_b, b.further, a.further)
        put_back, put_forth = (
            repairs.find_remedy(kind, back),
            repairs.find_remedy(kind, change),
        )
    bodies = (
        side.further.get(f"{kind}_definition", {}).get(name, "") for side in (a, b)
    )
    body_of_a, body_of_b = bodies
    if body_of_a and body_of_b and body_of_a != body_of_b:
        of_a, of_b = body_of_a, body_of_b
    return Suspect(
        kind,
        name,
        of_a,
        of_b,
        plan_parts=PLAN_PARTS.get(kind, ()),
        statements=put_back.statements,
        statements_forth=put_forth.statements,
        undefined=put_back.undefined,
        undefined_forth=put_forth.undefined,
    )


def _others(
    a: Side, b: Side, facts: Facts, repartitioned: Collection[str]
) -> Iterator[Suspect]:
    """What follows from plans, sizes, builds and what happened."""
    if facts.plans is not None and not facts.same_plans:
        yield Suspect("plan", "", *facts.plans, evidence=("plans_differ",))
    for name in (*_OF_CLUSTER, *_OF_BUILD):
        of_a, of_b = a.settings.get(name), b.settings.get(name)
        if of_a is not None and of_b is not None and of_a.amount != of_b.amount:
            kind = _PRESET_KINDS.get(
                name, "database" if name in _OF_CLUSTER else "build"
            )
            yield Suspect(kind, name, of_a.text, of_b.text)
    if a.accounts and b.accounts:
        yield from _compare_relations(
            a.accounts[0],
            b.accounts[0],
            repartitioned,
            can_repair=_has_setup(a, b),
        )
        yield from _compare_builds(a.accounts[0], b.accounts[0])
    for kind, columns in _HAPPENED.items():
        if any(counter.column in columns for counter in facts.moved):
            yield Suspect(kind, "", "", "")


_HAPPENED: Mapping[str, tuple[str, ...]] = {
    "vacuum": ("autovacuum_count", "autoanalyze_count"),
    "checkpoints": ("timed", "requested"),
}


def _compare_relations(
    a: Account, b: Account, repartitioned: Collection[str], *, can_repair: bool
) -> Iterator[Suspect]:
    for kind, letters in (("index", "i"), ("relation", "rm")):
        if a.objects.get(kind) and b.objects.get(kind):
            continue  # They are compared by their definition.
        of_a, of_b = (
            {
                name
                for name, relation in side.relations.items()
                if relation["kind"] in letters
            }
            for side in (a, b)
        )
        for name in sorted(of_a ^ of_b):
            evidence = ("relations_differ",)
            yield Suspect(
                kind,
                name,
                name * (name in of_a),
                name * (name in of_b),
                evidence=evidence,
            )
    yield from _compare_row_counts(a, b, repartitioned)
    for name in sorted((a.relations.keys() & b.relations.keys()) - set(repartitioned)):
        sizes = [float(side.relations[name]["bytes"]) for side in (a, b)]
        if (
            min(sizes) > 0
            and max(sizes) / min(sizes) > BLOATED
            and max(sizes) > MOST_SMALL
        ):
            size_of_a, size_of_b = (f"{size / 2**20:.1f} MB" for size in sizes)
            is_table = a.relations[name]["kind"] in "rm"
            change = repairs.Change(name, now=size_of_b, wanted=size_of_a)
            yield Suspect(
                "bloat",
                name,
                size_of_a,
                size_of_b,
                statements=repairs.find_remedy("bloat", change).statements
                if can_repair and is_table
                else (),
                evidence=("relations_differ",),
            )


def _compare_row_counts(
    a: Account, b: Account, repartitioned: Collection[str]
) -> Iterator[Suspect]:
    """Tables with another number of rows, as the statistics of both sides estimate it."""
    for name in sorted((a.relations.keys() & b.relations.keys()) - set(repartitioned)):
        of_sides = [side.relations[name] for side in (a, b)]
        rows = [float(relation.get("tuples") or 0) for relation in of_sides]
        is_table = all(relation["kind"] in "rm" for relation in of_sides)
        if is_table and min(rows) >= 0 and max(rows) > BLOATED * min(rows):
            rows_of_a, rows_of_b = (f"{number:.0f}" for number in rows)
            yield Suspect("rows", name, rows_of_a, rows_of_b)


def _compare_builds(a: Account, b: Account) -> Iterator[Suspect]:
    of_compiler = ("compiler", _compiler(a.built), _compiler(b.built))
    of_flags = ("CFLAGS", *(side.configuration.get("CFLAGS", "") for side in (a, b)))
    of_options = (
        "CONFIGURE",
        *(side.configuration.get("CONFIGURE", "") for side in (a, b)),
    )
    for name, of_a, of_b in (of_compiler, of_flags, of_options):
        if of_a and of_b and _unplaced(of_a) != _unplaced(of_b):
            yield Suspect("build", name, of_a, of_b, parts=("server",))


_COMPILER = re.compile(r"compiled by ([^,]+)")
# The same options with another folder make the same program.
_FOLDER = re.compile(r"'--(?:prefix|\w*dir)=[^']*'")


def _compiler(built: str) -> str:
    compiler_match = _COMPILER.search(built)
    return compiler_match[1] if compiler_match else ""


def _unplaced(text: str) -> str:
    return " ".join(_FOLDER.sub("", text).split())


def _judged(suspect: Suspect, facts: Facts, difference: Difference | None) -> Suspect:
    """With its signs, what was looked at, and its rank."""
    family = _family(suspect, facts.majors)
    moved = tuple(
        counter
        for counter in facts.moved
        if (counter.view, counter.column) in family.counters
    )
    evidence = suspect.evidence + tuple(_evidence(family, facts))
    if suspect.kind == "function" and _differ(facts):
        # One that is inlined, or of another volatility, makes another plan.
        evidence += ("plans_differ",)
    if "blocked" in family.traces and _is_blocked(difference):
        evidence += ("blocked_moved",)
    if moved:
        evidence += ("counters_moved",)
    looked = tuple(_looked(family, facts))
    state: State = "not_judged"
    if evidence:
        state = "acts"
    elif looked:
        state = "no_sign"
    weight = _weight(suspect, state, evidence, moved) * family.share
    parts = suspect.parts or tuple(family.parts)
    return replace(
        suspect,
        state=state,
        evidence=tuple(dict.fromkeys(evidence)),
        moved=moved,
        looked=looked,
        unseen=tuple(_unseen(family, facts)),
        parts=parts,
        rank=weight * _reach(parts, difference),
    )


_WEIGHTS = {
    "parallel_differs": 6.0,
    "jit_used": 6.0,
    "plans_differ": 5.0,
    "counters_moved": 4.0,
}
# Of a counter that is not of the table that differs.
_ELSEWHERE = 0.25
# What the statements of a load go through, where nothing shows whether they do.
_IN_STATEMENTS = frozenset({"function", "trigger", "view", "policy", "constraint"})


# What mostly follows from another difference.
_FOLLOWING = frozenset({"distribution", "freshness", "rows"})


def _weight(
    suspect: Suspect, state: State, evidence: Sequence[str], moved: Sequence[Moved]
) -> float:
    """How strong the evidence is, before its reach."""
    weight = {"acts": 1.0, "not_judged": 1.0, "no_sign": 0.5}[state]
    if suspect.kind in _IN_STATEMENTS:
        weight += 0.5
    for code in dict.fromkeys(evidence):
        if code == "counters_moved" and not _has_own(suspect, moved):
            weight += _ELSEWHERE
        else:
            weight += _WEIGHTS.get(code, 2.0)
    if suspect.kind == "plan":
        weight += 10.0
    if suspect.kind in _FOLLOWING:
        weight *= 0.8
    return weight


_TABLE_OF_INDEX = re.compile(r" ON (?:ONLY )?(?:\w+\.)?\"?(\w+)")


def _has_own(suspect: Suspect, moved: Sequence[Moved]) -> bool:
    """Whether a counter of its own table moved, of what belongs to one."""
    table = ""
    if suspect.kind == "index":
        match = _TABLE_OF_INDEX.search(suspect.a or suspect.b)
        table = match[1] if match is not None else ""
    elif suspect.kind == "partition":
        return True
    elif suspect.kind in {"relation", "bloat", "rows", *_OF_RELATIONS}:
        table = suspect.name.partition(".")[0]
    if not table:
        return True
    return any(table in counter.key.split(" ") for counter in moved)


def _family(suspect: Suspect, majors: tuple[str, str]) -> Family:
    if suspect.kind != "setting":
        return families.find_family(suspect.kind)
    catalogued = setting(suspect.name, majors[1]) or setting(suspect.name, majors[0])
    return families.find_setting_family(
        suspect.name, catalogued.category if catalogued else ""
    )


def _differ(facts: Facts) -> bool:
    """Whether plans are known to."""
    return facts.plans is not None and not facts.same_plans


def _evidence(family: Family, facts: Facts) -> Iterator[str]:
    if "plans" in family.traces and _differ(facts):
        yield "plans_differ"
    if "parallel" in family.traces and facts.differ_in("Gather"):
        yield "parallel_differs"
    if "jit" in family.traces and facts.has_jit:
        yield "jit_used"


def _looked(family: Family, facts: Facts) -> Iterator[str]:
    """The counters that both sides have, and plans."""
    if facts.plans is not None and _OF_PLANS & set(family.traces):
        yield "plans"
    if facts.rounds >= LEAST_ROUNDS:
        for view, column in family.counters:
            if facts.oldest >= counters.COLUMNS[view][column] and facts.has(view):
                yield f"{view}.{column}"


def _unseen(family: Family, facts: Facts) -> Iterator[str]:
    if _OF_PLANS & set(family.traces) and facts.plans is None:
        yield "plans"
    if family.counters and facts.rounds < LEAST_ROUNDS:
        yield "rounds"
    for view, column in family.counters:
        if facts.oldest < counters.COLUMNS[view][column] or not facts.has(view):
            yield f"{view}.{column}"
    for code in family.unseen:
        if code != "functions" or (facts.has_functions and not facts.has_nested):
            yield code


def _is_blocked(difference: Difference | None) -> bool:
    """Whether the time that is blocked surely differs."""
    if difference is None or difference.rounds < LEAST_ROUNDS:
        return False
    return "blocked" in difference.moved


def _reach(parts: Sequence[str], difference: Difference | None) -> float:
    """The share of the difference that these parts have; 1 where it is not known."""
    if difference is None or not parts or difference.limits:
        return 1.0
    changes = {name: abs(change.value) for name, change in difference.by_part.items()}
    total = sum(changes.values())
    change_of_parts = sum(changes.get(name, 0.0) for name in parts)
    return change_of_parts / total if total else 1.0
