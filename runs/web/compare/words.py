"""The words of the compare page: codes of the analysis in the reader's language."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.analysis.comparability_judgement import Differing
from runs.models import Metric
from runs.selectors.compare.verdict_words import REASONS
from runs.templatetags import formats
from runs.templatetags.formats import bytesize, told

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
FACTS = {
    "name": gettext_lazy("machine"),
    "cpu_model": gettext_lazy("CPU model"),
    "sockets": gettext_lazy("sockets"),
    "cores": gettext_lazy("cores"),
    "threads": gettext_lazy("hardware threads"),
    "memory_bytes": gettext_lazy("memory"),
    "virtualization": gettext_lazy("virtualisation"),
    "os_name": gettext_lazy("operating system"),
    "kernel": gettext_lazy("kernel"),
    "architecture": gettext_lazy("architecture"),
    "server": gettext_lazy("server version"),
    "tool": gettext_lazy("load generator"),
    "topology": gettext_lazy("topology"),
    "repeats": gettext_lazy("repeats"),
    "cold_cache": gettext_lazy("caches emptied"),
    "governor": gettext_lazy("CPU governor"),
    "server_cpus": gettext_lazy("CPUs of the server"),
    "pgbench_cpus": gettext_lazy("CPUs of pgbench"),
    "profile": gettext_lazy("profile by perf"),
    "syscalls": gettext_lazy("system calls traced"),
    "stacks": gettext_lazy("stacks traced"),
    "waits": gettext_lazy("wait events asked"),
    "statements": "pg_stat_statements",
    "io": "pg_stat_io",
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


def sentence(codes: Iterable[str]) -> str:
    """The reasons in one line."""
    return "; ".join(str(REASONS.get(code, code)) for code in codes)


def differing(facts: Iterable[Differing]) -> str:
    """The facts in which both sides differ though nobody declared them: "fsync: on, off"."""
    found = [each for each in facts if not each.is_declared]
    named = [f"{fact(each.kind, each.name)}: {_sides(each)}" for each in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        named.append(_("%(number)d more") % {"number": len(found) - MOST_NAMED})
    return "; ".join(named)


def _sides(each: Differing) -> str:
    """The values of base and head; a dash for what is not known."""
    texts = [", ".join(map(str, side)) or "–" for side in (each.base, each.head)]
    return " ↔ ".join(texts)


def change(ratio: float | None) -> str:
    """A ratio as a change: -3.6 %; from three times on as a factor: × 30.2."""
    if not ratio:
        return ""
    return f"× {ratio:.3g}" if ratio >= LARGE else formats.change(ratio)


def metric_title(metric: Metric) -> str:
    """The metric with its unit."""
    title = told(metric, "title")
    text = _(title) if title else metric.name
    return f"{text} ({metric.unit})" if metric.unit else text


def fact(kind: str, name: str) -> str:
    """The name of something in which series differ; settings and parameters have their own."""
    return name if kind in ("settings", "parameters") else str(FACTS.get(name, name))


def fact_value(name: str, value: Any) -> str:
    """Its value; what is not known is a dash."""
    if value is None or value == "":
        return "–"
    if name == "memory_bytes" and isinstance(value, int):
        return bytesize(value)
    return str(value)
