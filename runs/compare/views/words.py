"""The words of the compare page: codes of the analysis in the reader's language."""

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.analysis.comparability_judgement import Differing
from runs.compare.selectors.describe import series_labels
from runs.shared import formats

# Of the facts that a row names; the table of all differences has the others.
MOST_NAMED = 4
# From here on nobody counts in percent.
LARGE = 3

KINDS = {
    "hardware": gettext_lazy("Hardware"),
    "environment": gettext_lazy("Environment"),
    "software": gettext_lazy("Software"),
    "settings": gettext_lazy("Settings"),
    "parameters": gettext_lazy("Parameters"),
    "design": gettext_lazy("Design"),
    "treatment": gettext_lazy("Treatment of the machines"),
}
FACETS = {
    "none": gettext_lazy("one chart"),
    "configuration": gettext_lazy("by configuration"),
    "os": gettext_lazy("by operating system"),
    "arrangement": gettext_lazy("by arrangement"),
    "topology": gettext_lazy("by topology"),
    "hardware": gettext_lazy("by hardware"),
    "version": gettext_lazy("by version"),
}
FITS = {
    "": gettext_lazy("none"),
    "amdahl": gettext_lazy("Amdahl's law"),
    "usl": gettext_lazy("Universal Scalability Law"),
}
OVERRIDES = {
    "hardware": gettext_lazy("Compare across different hardware"),
    "environment": gettext_lazy("Compare across different environments"),
    "build": gettext_lazy("Compare across different builds"),
    "settings": gettext_lazy("Compare across different settings"),
    "workload": gettext_lazy("Compare across different workloads"),
}


def differing(facts: Iterable[Differing]) -> str:
    """The facts in which both sides differ though nobody declared them: "fsync: on, off"."""
    undeclared = [differing for differing in facts if not differing.is_declared]
    descriptions = [
        f"{series_labels.fact(differing.kind, differing.name)}: {_sides(differing)}"
        for differing in undeclared[:MOST_NAMED]
    ]
    if len(undeclared) > MOST_NAMED:
        descriptions.append(
            _("%(number)d more") % {"number": len(undeclared) - MOST_NAMED}
        )
    return "; ".join(descriptions)


def _sides(differing_fact: Differing) -> str:
    return " ↔ ".join(
        [
            ", ".join(map(str, side)) or "–"
            for side in (differing_fact.base, differing_fact.head)
        ]
    )


def change(ratio: float | None) -> str:
    """A ratio as a change: -3.6 %; from three times on as a factor: × 30.2."""
    if not ratio:
        return ""
    return f"× {ratio:.3g}" if ratio >= LARGE else formats.change(ratio)
