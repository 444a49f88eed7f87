"""The state of the compare page: all of it is in the query string of its address."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from runs.analysis.comparability_rules import KINDS
from runs.analysis.inference import DEFAULT_EFFECT
from runs.cells.selectors import series_cells
from runs.cells.selectors.series_cells import BadSeriesKey, SeriesKey

# With more, neither lines nor a table of pairs are readable.
MOST_SERIES = 24
NO_AXIS = "none"
FACETS = (
    "none",
    "configuration",
    "os",
    "arrangement",
    "topology",
    "hardware",
    "version",
)
CONDITIONS: tuple[str, ...] = KINDS
FITS = ("", "amdahl", "usl")
LARGEST_EFFECT = 1000.0


@dataclass(frozen=True)
class CompareState:
    """Which series are compared, and how.

    `x` is a factor, `none` for no axis, or empty for the factor that fits best; `metric` empty is
    the first metric of the series. `base` is the key of the baseline, empty for the first series.
    `effect` is the minimum effect in percent; `ignore` names conditions that may differ. `at` is
    the level of the table of all pairs, empty for each series' peak. `fit` is a law of
    scalability that is drawn through each line.
    """

    series: tuple[SeriesKey, ...] = ()
    x: str = ""
    metric: str = ""
    base: str = ""
    relative: bool = False
    log_x: bool = False
    log_y: bool = False
    facet: str = "none"
    matters: bool = False
    effect: float = DEFAULT_EFFECT
    ignore: tuple[str, ...] = ()
    at: str = ""
    fit: str = ""

    @property
    def is_drawn_otherwise(self) -> bool:
        """Whether more is chosen than the series, the axis, the metric and the baseline."""
        has_switch = self.relative or self.log_x or self.log_y or self.matters
        is_asked = bool(self.at or self.fit) or self.facet != "none"
        return has_switch or is_asked or self.effect != DEFAULT_EFFECT

    @property
    def query(self) -> str:
        """The query string for this state; defaults are left out."""
        pairs: list[tuple[str, str]] = [("s", str(key)) for key in self.series]
        texts = {"x": self.x, "metric": self.metric, "base": self.base, "at": self.at}
        pairs += [(name, text) for name, text in texts.items() if text]
        if self.facet != "none":
            pairs.append(("facet", self.facet))
        if self.fit:
            pairs.append(("fit", self.fit))
        switches = {"relative": self.relative, "logx": self.log_x, "logy": self.log_y}
        switches["matters"] = self.matters
        pairs += [(name, "1") for name, is_on in switches.items() if is_on]
        if self.effect != DEFAULT_EFFECT:
            pairs.append(("effect", f"{self.effect:g}"))
        if self.ignore:
            pairs.append(("ignore", ",".join(self.ignore)))
        return urlencode(pairs)

    def add_series(self, key: SeriesKey) -> "CompareState":
        """The same with one more series."""
        return self if key in self.series else replace(self, series=(*self.series, key))

    def remove_series(self, key: SeriesKey) -> "CompareState":
        """The same without a series; if that was the baseline, the first one becomes it."""
        base = "" if self.base == str(key) else self.base
        return replace(
            self,
            base=base,
            series=tuple(series_key for series_key in self.series if series_key != key),
        )

    @property
    def ignored_codes(self) -> tuple[str, ...]:
        """The differences that are ignored, by the codes of the analysis."""
        return tuple(f"{name}_differs" for name in self.ignore)


def read(query: QueryDict) -> tuple[CompareState, list[str]]:
    """The state in a query string, and messages about what is unreadable and at its default."""
    faults: list[str] = []
    state = CompareState(
        series=_series(query.getlist("s"), faults),
        x=query.get("x", ""),
        metric=query.get("metric", ""),
        base=query.get("base", ""),
        relative=_is_on(query, "relative"),
        log_x=_is_on(query, "logx"),
        log_y=_is_on(query, "logy"),
        facet=_one_of("facet", query.get("facet") or "none", FACETS, faults),
        matters=_is_on(query, "matters"),
        effect=_effect(query.get("effect", ""), faults),
        ignore=_ignored(query, faults),
        at=query.get("at", ""),
        fit=_one_of("fit", query.get("fit", ""), FITS, faults),
    )
    return state, faults


def _series(texts: Sequence[str], faults: list[str]) -> tuple[SeriesKey, ...]:
    keys: dict[SeriesKey, None] = {}
    for text in texts:
        try:
            keys[series_cells.parse(text)] = None
        except BadSeriesKey as error:
            faults.append(str(error))
    if len(keys) > MOST_SERIES:
        faults.append(too_many(len(keys)))
    return tuple(keys)[:MOST_SERIES]


def too_many(count: int) -> str:
    """The message if more series are requested than can be shown."""
    return _(
        "%(count)d series are too many for one comparison; the first %(most)d are shown."
        " Fix more levels, or take series away."
    ) % {"count": count, "most": MOST_SERIES}


def _one_of(name: str, text: str, choices: Sequence[str], faults: list[str]) -> str:
    if text in choices:
        return text
    faults.append(
        _("%(name)s=%(text)s is not known; known are %(known)s.")
        % {
            "name": name,
            "text": text,
            "known": ", ".join(word for word in choices if word),
        }
    )
    return choices[0]


def _effect(text: str, faults: list[str]) -> float:
    try:
        effect = float(text) if text else DEFAULT_EFFECT
    except ValueError:
        effect = -1.0
    if 0 <= effect <= LARGEST_EFFECT:
        return effect
    faults.append(
        _("effect=%(text)s must be a number of percent from 0 to 1000.")
        % {"text": text}
    )
    return DEFAULT_EFFECT


def _ignored(query: QueryDict, faults: list[str]) -> tuple[str, ...]:
    # A form sends one field per box, a link one list.
    names = [
        name for text in query.getlist("ignore") for name in text.split(",") if name
    ]
    return tuple(
        dict.fromkeys(
            name
            for name in names
            if _one_of("ignore", name, (*CONDITIONS, ""), faults) == name
        )
    )


def _is_on(query: QueryDict, name: str) -> bool:
    return query.get(name, "") not in ("", "0")
