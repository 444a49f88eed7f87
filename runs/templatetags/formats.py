"""How numbers, times and stored English words are written on pages."""

import shlex

from django import template

from runs.compare.selectors.describe.verdict_words import (
    missing,
    sized,
    verdict,
)
from runs.models import Build, Run, Token
from runs.queue.selectors import certificate_words
from runs.servers.selectors import builds
from runs.shared.formats import (
    LIMITS,
    UNITS,
    about,
    add_unit,
    bytesize,
    capped,
    change,
    duration,
    estimate,
    factor,
    format_level,
    kilobytes,
    limit,
    listed,
    memory,
    milliseconds,
    named,
    noted,
    percent,
    place,
    quantity,
    ratio,
    repeats,
    spoken,
    subtract_times,
    term,
    tone,
    translate_field,
    translated,
    unbroken,
    unlocalised,
    worded,
)

register = template.Library()
register.filter(quantity)
register.filter(estimate)
register.filter(milliseconds)
register.filter(repeats)
register.filter(ratio)
register.filter(factor)
register.filter(change)
register.filter(percent)
register.filter(duration)
register.filter(about)
register.filter(bytesize)
register.filter(kilobytes)
register.filter(limit)
register.filter(unbroken)
register.filter(translated)
register.filter(worded)
register.filter(noted)
register.filter(spoken)
register.filter(translate_field)
register.filter(term)
register.filter(add_unit)
register.filter(named)
register.filter(memory)
register.filter(place)
register.filter(format_level)
register.filter(listed)
register.filter(subtract_times)
register.filter(unlocalised)
register.filter(tone)
register.filter(capped)
register.filter(verdict)
register.filter(sized)

register.filter("lacks", missing)
register.filter("build", builds.words)
register.filter("is_slow_build", builds.is_slow)
register.filter("shell", shlex.join)
register.filter("limit_title", lambda name: str(LIMITS.get(name, name)))
register.filter("unit", lambda name: str(UNITS.get(name, name)))
register.filter("judgement", lambda code: str(certificate_words.LABELS[code]))
register.filter("judgement_tone", lambda code: certificate_words.TONES[code])
# Stored words by their titles.
for _name, _kind in (
    ("scope", Token.Scope),
    ("run_state", Run.State),
    ("build_state", Build.State),
):
    register.filter(_name, lambda value, kind=_kind: str(kind(value).label))
