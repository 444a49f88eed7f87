"""Processors and memory that a login may use, of any architecture: usable before installed.

Sources: Documentation/ABI/stable/sysfs-devices-system-cpu, admin-guide/cgroup-v1 and -v2 of Linux,
lscpu(1), whose labels differ by architecture and version.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from runs.execution.machine import cpus
from runs.execution.machine.sections import Sections, first, number_in, pairs

_UNKNOWN = frozenset(("", "-", "unknown", "Not Specified"))


def processors_of(sections: Sections) -> dict[str, Any]:
    """What may be used of the processors, as fields of `Hardware`; None is unknown."""
    lines = sections.get("lscpu", [])
    # The numbers of the processors that are on line and allowed; empty if they are unknown.
    online, allowed = _online(sections), _numbers(first(sections, "allowed"))
    usable = (online & allowed) or online or allowed
    topology = _topology(sections, usable)
    threads = _threads(sections, usable)
    sockets, cores = topology or (_sockets(lines), _cores(lines))
    if cores is not None and threads is not None:
        cpu = pairs(lines, ":")
        listed_threads = number_in(cpu.get("CPU(s)")) or 0
        # Of hybrid processors some cores have fewer threads.
        is_part = not topology and (cores > threads or threads < listed_threads)
        per_core = number_in(cpu.get("Thread(s) per core")) if is_part else None
        cores = min(cores, max(threads // (per_core or 1), 1))
        sockets = sockets and min(
            sockets, cores
        )  # a mainframe lists all that it could have
    model = _model(sections)
    return {"cpu_model": model, "sockets": sockets, "cores": cores, "threads": threads}


def usable_memory(sections: Sections) -> int | None:
    """The memory in bytes, or what the groups of the login leave of it."""
    installed, limit = _installed_memory(sections), _memory_limit(sections)
    return installed if installed is None or limit is None else min(installed, limit)


def _installed_memory(sections: Sections) -> int | None:
    memory = pairs(sections.get("meminfo", []), ":").get("MemTotal", "")
    size = number_in(memory.partition(" ")[0])
    return None if size is None else size * 1024


def restrictions(sections: Sections) -> dict[str, str]:
    """What a login may not use of its machine, by name; only what is known.

    A machine without a limit says so: results that do not know a fact cannot differ in it.
    """
    limits = {}
    if any(sections.get("cgroup", [])):
        share = _cpu_limit(sections)
        limits["cpu_limit"] = "none" if share is None else f"{share:g}"
    installed, limit = _installed_memory(sections), _memory_limit(sections)
    if limit is not None and (installed is None or limit < installed):
        limits["memory_limit_bytes"] = str(limit)
    online, allowed = _online(sections), _numbers(first(sections, "allowed"))
    if online and allowed and online - allowed:
        limits["cpus_allowed"] = first(sections, "allowed")
    if hybrid := pairs(sections.get("hybrid", []), "\t"):
        limits["hybrid_cores"] = ", ".join(
            f"{kind} {cpus}" for kind, cpus in hybrid.items() if cpus
        )
    return {name: value for name, value in limits.items() if value}


def _numbers(text: str) -> frozenset[int]:
    """A kernel's list of processors, such as 0-3,8,10-11; empty for anything else."""
    try:
        return cpus.parse(text)
    except ValueError:
        return frozenset()


def _online(sections: Sections) -> frozenset[int]:
    return _numbers(
        pairs(sections.get("lscpu", []), ":").get("On-line CPU(s) list", "")
    )


def _threads(sections: Sections, usable: frozenset[int]) -> int | None:
    """The fewest that anybody says: a container may show its host's processors somewhere."""
    cpu = pairs(sections.get("lscpu", []), ":")
    counts = (
        number_in(cpu.get("CPU(s)")),
        number_in(first(sections, "processors")),
        len(usable) or None,
    )
    return min((count for count in counts if count), default=None)


def _topology(
    sections: Sections, usable: frozenset[int]
) -> tuple[int | None, int | None] | None:
    """(sockets, cores) by the kernel's own files; the siblings say which threads share a core."""
    packages, cores = set(), set()
    for line in sections.get("topology", []):
        # An old kernel leaves out what it does not have, at the end.
        columns = zip_longest(
            ("number", "core", "package", "siblings"), line.split("\t")
        )
        thread = {name: text or "" for name, text in columns}
        number = thread["number"]
        if number_in(number) is None or (usable and int(number) not in usable):
            continue
        packages.add(thread["package"])
        cores.add((thread["package"], thread["siblings"] or thread["core"]))
    if not cores:
        return None
    # -1 is a machine that does not say.
    return (None if packages & {"-1", ""} else len(packages)), len(cores)


def _blocks(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    """The lines of lscpu by model: a hybrid machine has several."""
    block: list[str] = []
    for line in lines:
        if line.strip().startswith("Model name:") and any(
            "Model name:" in line for line in block
        ):
            yield pairs(block, ":")
            block = []
        block.append(line)
    yield pairs(block, ":")


def _count_sockets_and_cores(cpu: dict[str, str]) -> tuple[int | None, int | None]:
    sockets = number_in(cpu.get("Socket(s)")) or number_in(cpu.get("CPU socket(s)"))
    if sockets is None and (per_book := number_in(cpu.get("Socket(s) per book"))):
        books = (
            number_in(cpu.get("Book(s)"))
            or number_in(cpu.get("Book(s) per drawer"))
            or 1
        )
        sockets = per_book * books * (number_in(cpu.get("Drawer(s)")) or 1)
    clusters = number_in(cpu.get("Cluster(s)"))
    per_socket = number_in(cpu.get("Core(s) per socket"))
    per_cluster = number_in(cpu.get("Core(s) per cluster"))
    if sockets and per_socket:
        return sockets, sockets * per_socket
    return sockets, clusters * per_cluster if clusters and per_cluster else None


def _sockets(lines: Sequence[str]) -> int | None:
    blocks = [_count_sockets_and_cores(block)[0] for block in _blocks(lines)]
    return blocks[0] if len(blocks) == 1 else None


def _cores(lines: Sequence[str]) -> int | None:
    blocks = [_count_sockets_and_cores(block)[1] for block in _blocks(lines)]
    known_counts = [block_cores for block_cores in blocks if block_cores is not None]
    return sum(known_counts) if len(known_counts) == len(blocks) else None


def _model(sections: Sections) -> str:
    lines = sections.get("lscpu", [])
    model_names = [block.get("Model name", "") for block in _blocks(lines)]
    models = [
        model_name
        for model_name in dict.fromkeys(model_names)
        if model_name not in _UNKNOWN
    ]
    if models:
        return " + ".join(models)
    if (
        cpuinfo_model := first(sections, "cpuinfo").partition(":")[2].strip()
    ) not in _UNKNOWN:
        return cpuinfo_model
    cpu = pairs(lines, ":")
    if (bios := cpu.get("BIOS Model name", "")) not in _UNKNOWN:
        return bios
    if (
        vendor := cpu.get("Vendor ID", "")
    ) in _UNKNOWN:  # its number of a model says nothing
        return cpu.get("Architecture", "")
    model = cpu.get("Machine type", "") or cpu.get("Model", "")
    return vendor if model in _UNKNOWN else f"{vendor} {model}"


def _cpu_limit(sections: Sections) -> float | None:
    limits: list[float] = []
    quota: int | None = None
    for line in sections.get("cgroup", []):
        name, _tab, value = line.partition("\t")
        if name == "cpu.max":
            most, _blank, period = value.partition(" ")
            limits += _share(number_in(most), number_in(period))
        elif name == "cpu.cfs_quota_us":
            quota = number_in(value)
        elif name == "cpu.cfs_period_us":
            limits += _share(quota, number_in(value))
            quota = None
    return min(limits, default=None)


def _share(quota: int | None, period: int | None) -> list[float]:
    return [quota / period] if quota and period else []


def _memory_limit(sections: Sections) -> int | None:
    names = ("memory.max", "memory.limit_in_bytes")
    name_value_pairs = (line.partition("\t") for line in sections.get("cgroup", []))
    limits = [
        number_in(value) for name, _tab, value in name_value_pairs if name in names
    ]
    return min((limit for limit in limits if limit), default=None)
