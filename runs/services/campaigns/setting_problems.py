"""What is wrong with the settings that a campaign varies, besides what a version refuses."""

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from runs.postgresql_settings import fitting, values
from runs.postgresql_settings.catalogue import setting
from runs.services.campaigns.designs import MOST_VARIANTS, Design
from runs.services.configurations.fitting import major_of
from runs.services.problems import Problem


def problems(design: Design) -> Iterator[Problem]:
    """Settings without a level, set by the scenario itself, or whose levels do not differ."""
    if not design.has_all_variants:
        message = _("These are too many combinations of configurations and settings.")
        remedy = _("Choose fewer than %(most)d.") % {"most": MOST_VARIANTS}
        yield Problem("too_many_variants", message, remedy, "settings")
    factors = {factor.name for factor in design.scenario.factors}
    owned = {
        name.lower()
        for cell in design.cells
        for name in (*cell.cluster.settings, *cell.cluster.required)
    }
    for name, levels in design.draft.settings.items():
        place = f"settings/{name}"
        if not levels:
            message = _("%(factor)s has no level.") % {"factor": name}
            yield Problem("no_level", message, _("Give at least one."), place)
        if name in factors or name.lower() in owned:
            message = _("The scenario sets %(name)s itself.") % {"name": name}
            yield Problem("setting_is_scenarios", message, _("Leave it out."), place)
        yield from _alike(design, name, levels)


def _alike(design: Design, name: str, levels: Sequence[str]) -> Iterator[Problem]:
    """Levels that write the same value differently, such as 1GB and 1024MB."""
    majors = dict.fromkeys(major_of(each) for each in design.draft.installations)
    for major in majors:
        seen: dict[object, str] = {}
        for level in dict.fromkeys(levels):
            value = _value(name, level, major)
            other = seen.setdefault(value, level)
            if other != level:
                message = _("%(name)s has the same value as %(one)s and as %(other)s.") % {
                    "name": name,
                    "one": other,
                    "other": level,
                }
                yield Problem("same_level", message, _("Leave one out."), f"settings/{name}")
                return


def _value(name: str, level: str, major: str) -> object:
    """The value as this version reads it; the text itself if the version does not know it."""
    found = []
    for own, text in fitting.fit({name: level}, major).settings.items():
        known = setting(own, major)
        try:
            found.append((own, values.parse(text, known) if known else text))
        except values.BadValue:
            found.append((own, text))
    return tuple(found) or level
