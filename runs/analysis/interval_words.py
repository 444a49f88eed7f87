"""How large a difference is, in words: the server says them in its readers' languages, and
`benchlab-pair` in English.
"""

from collections.abc import Callable

from runs.analysis.inference.verdicts import Inference
from runs.analysis.number_words import percent, times
from runs.wording import gettext_noop as _
from runs.wording import keep_english

# Above this and below that, percentages are not helpful.
TIMES, A_PART = 2.0, 0.1


def size(found: Inference, translate: Callable[[str], str] = keep_english) -> str:
    """How large the difference is, as an interval: "4.2 to 14 % slower". Empty without one."""
    if found.low is None:
        return ""
    if found.high is None:
        if found.low <= 1:
            return translate(_("%(low)s times and more")) % {"low": times(found.low)}
        return translate(_("at least %(times)s times")) % {"times": times(found.low)}
    if found.verdict == "same":
        most = max(found.high - 1, 1 - found.low)
        return translate(_("within %(most)s %%")) % {"most": percent(most)}
    if 1 / TIMES < found.low <= 1 <= found.high < TIMES:
        percents = {"less": percent(1 - found.low), "more": percent(found.high - 1)}
        return translate(_("between %(less)s %% less and %(more)s %% more")) % percents
    if (
        found.high >= TIMES
        or found.low < A_PART
        or found.low <= 1 / TIMES < 1 < found.high
    ):
        return _words_in_times(times(found.low), times(found.high), translate)
    return _words_in_percent(found, found.low, found.high, translate)


def _words_in_times(low: str, high: str, translate: Callable[[str], str]) -> str:
    if low == high:
        return translate(_("%(size)s times")) % {"size": low}
    return translate(_("%(low)s to %(high)s times")) % {"low": low, "high": high}


def _words_in_percent(
    found: Inference, low: float, high: float, translate: Callable[[str], str]
) -> str:
    """The words for a proven change: faster and slower for throughput, else more and less."""
    is_more = low > 1
    ratio_ends = (low - 1, high - 1) if is_more else (1 - high, 1 - low)
    ends = (percent(ratio_ends[0]), percent(ratio_ends[1]))
    sized = ends[0]
    if ends[0] != ends[1]:
        sized = translate(_("%(low)s to %(high)s")) % {"low": ends[0], "high": ends[1]}
    if found.verdict == "faster" and is_more:
        return translate(_("%(size)s %% faster")) % {"size": sized}
    if found.verdict == "slower" and not is_more:
        return translate(_("%(size)s %% slower")) % {"size": sized}
    if is_more:
        return translate(_("%(size)s %% more")) % {"size": sized}
    return translate(_("%(size)s %% less")) % {"size": sized}
