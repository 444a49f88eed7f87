"""The names and values of facts about machines and configurations, in the reader's language."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.templatetags.formats import bytesize

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
    "instructions": gettext_lazy("instructions"),
    "disks": gettext_lazy("disks"),
    "os": gettext_lazy("operating system"),
    "kernel_series": gettext_lazy("kernel series"),
    "filesystem": gettext_lazy("file system"),
    "huge_pages": gettext_lazy("huge pages"),
    "cpu_limit": gettext_lazy("CPU limit"),
    "optimisation": gettext_lazy("optimisation"),
    "compiler": gettext_lazy("compiler"),
    "llvm": "LLVM",
}


def fact(kind: str, name: str) -> str:
    """The name of something in which series differ; settings and parameters have their own."""
    return name if kind in ("settings", "parameters") else str(FACTS.get(name, name))


def fact_value(name: str, value: Any) -> str:
    """Its value; what is not known is a dash."""
    if value is None or value == "":
        return "–"
    if name == "memory_bytes" and isinstance(value, int):
        return bytesize(value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return str(value)
