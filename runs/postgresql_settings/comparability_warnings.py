"""Settings that make runs incomparable with others, each with the reason.

A warning does not say that the setting is wrong: the reports themselves measure with autovacuum
off. It says what must be reported with the figures.
"""

from collections.abc import Iterator, Mapping, Sequence

from runs.postgresql_settings import values, version_notes
from runs.postgresql_settings.catalogue import existence, is_older, setting
from runs.postgresql_settings.effective import Effective
from runs.postgresql_settings.findings import About, Finding
from runs.wording import gettext_noop as _

_UNSAFE = _(
    "%(name)s = %(value)s gives up durability; compare such figures only with each other."
)
_COSTS = _(
    "%(name)s = %(value)s costs time in every run, which other runs do not spend."
)
_PLANS = _("%(name)s = off forbids plans that other runs may use.")
_DAMAGE = _(
    "%(name)s hides damaged data, so that a run may measure less than it should."
)

# Setting: words of its value that matter, and why.
_WORDS: Mapping[str, tuple[frozenset[str], str]] = {
    "fsync": (frozenset({"off"}), _UNSAFE),
    "full_page_writes": (frozenset({"off"}), _UNSAFE),
    "synchronous_commit": (
        frozenset({"off"}),
        _(
            "With synchronous_commit = off, commits do not wait for the disk: updates look faster"
            " than with the default."
        ),
    ),
    "autovacuum": (
        frozenset({"off"}),
        _(
            "With autovacuum off, nothing vacuums or analyses during the run: tables bloat in long"
            " runs, and figures compare only with runs without autovacuum."
        ),
    ),
    "log_statement": (frozenset({"all", "mod"}), _COSTS),
    "debug_parallel_query": (frozenset({"on", "regress"}), _COSTS),
    "force_parallel_mode": (frozenset({"on", "regress"}), _COSTS),
    "zero_damaged_pages": (frozenset({"on"}), _DAMAGE),
    "ignore_checksum_failure": (frozenset({"on"}), _DAMAGE),
    "ignore_invalid_pages": (frozenset({"on"}), _DAMAGE),
    **{
        name: (frozenset({"on"}), _COSTS)
        for name in (
            "debug_assertions",
            "debug_print_parse",
            "debug_print_plan",
            "debug_print_rewritten",
            "jit_dump_bitcode",
            "jit_profiling_support",
            "log_duration",
            "log_executor_stats",
            "log_parser_stats",
            "log_planner_stats",
            "log_statement_stats",
            "trace_notify",
            "trace_sort",
        )
    },
}
# Numbers that cost as soon as they are at or above the first figure.
_NUMBERS: Mapping[str, tuple[float, float]] = {
    "debug_discard_caches": (1, float("inf")),
    "log_min_duration_statement": (0, 0),
    "post_auth_delay": (1, float("inf")),
    "pre_auth_delay": (1, float("inf")),
}


def findings(effective: Effective) -> Iterator[Finding]:
    """What sets runs with these settings apart from others, in one version."""
    for name in sorted(effective.given):
        catalogued = setting(name, effective.major)
        if catalogued is None:
            continue
        if message := _reason(effective, catalogued.name):
            say = About(catalogued.name, effective.major)
            yield say.warning("not_comparable", message, value=effective.given[name])


def across(settings: Mapping[str, str], majors: Sequence[str]) -> Iterator[Finding]:
    """Defaults that differ between the versions of one comparison and are felt in its figures."""
    set_names = {name.lower() for name in settings}
    for name in sorted(version_notes.FELT_DEFAULTS - set_names):
        defaults: dict[str, list[str]] = {}
        for major in majors:
            catalogued = setting(name, major)
            if catalogued is not None:
                defaults.setdefault(values.default(catalogued), []).append(major)
        if len(defaults) > 1:
            yield _differing(name, defaults)


def _reason(effective: Effective, name: str) -> str:
    if name in _WORDS:
        words, message = _WORDS[name]
        word = effective.word(name) or ("on" if effective.is_on(name) else "off")
        return message if word in words else ""
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        number = effective.number(name)
        return _COSTS if number is not None and low <= number <= high else ""
    if name.startswith("enable_") and _is_a_plan_switched_off(effective, name):
        return _PLANS
    return ""


def _is_a_plan_switched_off(effective: Effective, name: str) -> bool:
    """Off though the version's default is on."""
    catalogued = setting(name, effective.major)
    return (
        catalogued is not None and catalogued.boot == "on" and not effective.is_on(name)
    )


def _differing(name: str, defaults: Mapping[str, list[str]]) -> Finding:
    text = "; ".join(
        f"{value} ({', '.join(majors)})" for value, majors in defaults.items()
    )
    versions = tuple(major for majors in defaults.values() for major in majors)
    return Finding(
        "warning",
        "default_differs",
        name,
        versions,
        _("The default of %(name)s differs between the versions: %(defaults)s."),
        {"name": name, "major": ", ".join(versions), "defaults": text},
        _("Set %(name)s, so that the versions are compared and not their defaults."),
    )


def felt_newcomers(older: str, newer: str) -> tuple[str, ...]:
    """Settings that came between the two versions and are felt without being set."""
    return tuple(
        name
        for name in sorted(version_notes.FELT_WHEN_NEW)
        if setting(name, newer) is not None
        and setting(name, older) is None
        and is_older(older, existence(name)[0])
    )
