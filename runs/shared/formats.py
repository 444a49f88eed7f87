"""How numbers, times and stored English words are written: by pages, reports, mails and charts."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import floor, isfinite, log10
from typing import Any

from django.conf import settings
from django.utils.translation import get_language, gettext, gettext_lazy, ngettext

from runs.analysis.number_words import fraction
from runs.wording import say_stored

# "2025 09" of a publication's slug: a year and a month.
_MONTH = re.compile(r"(?<= [12]\d\d\d) (?=\d\d(?: |$))")
# Facts about machines and constants in publications, by their names in the data files.
TERMS = {
    "added_storage": gettext_lazy("Added storage"),
    "arm": gettext_lazy("Arm"),
    "background_inserts": gettext_lazy("Background inserts"),
    "benchmark": gettext_lazy("Benchmark"),
    "clients": gettext_lazy("Clients"),
    "cpu_clock": gettext_lazy("CPU clock"),
    "duration": gettext_lazy("Duration"),
    "file_system": gettext_lazy("File system"),
    "filesystem": gettext_lazy("File system"),
    "fillfactor": gettext_lazy("Fill factor"),
    "hdd": gettext_lazy("HDD"),
    "host": gettext_lazy("Host"),
    "host_cpu": gettext_lazy("CPU of the host"),
    "hours": gettext_lazy("Hours"),
    "imported_from": gettext_lazy("Imported from"),
    "isolation": gettext_lazy("Isolation level"),
    "java": gettext_lazy("Java"),
    "jdbc_driver": gettext_lazy("JDBC driver"),
    "kernel_settings": gettext_lazy("Kernel settings"),
    "lent_by": gettext_lazy("Lent by"),
    "mount": gettext_lazy("Mounted at"),
    "memory_type": gettext_lazy("Kind of memory"),
    "network": gettext_lazy("Network"),
    "postgresql": gettext_lazy("PostgreSQL"),
    "records": gettext_lazy("Records"),
    "root_storage": gettext_lazy("Root storage"),
    "rows_per_partition": gettext_lazy("Rows per partition"),
    "scale": gettext_lazy("Scale factor"),
    "setup": gettext_lazy("Set up by"),
    "smt": gettext_lazy("SMT"),
    "specification": gettext_lazy("Specification"),
    "ssd": gettext_lazy("SSD"),
    "statement": gettext_lazy("Statement"),
    "storage": gettext_lazy("Storage"),
    "threads": gettext_lazy("Threads"),
    "transaction_type": gettext_lazy("Transaction type"),
    "vcpus": gettext_lazy("vCPUs"),
    "warm_up": gettext_lazy("Warm-up"),
    "word_size": gettext_lazy("Word size"),
}

# Limits of a machine's processes, by their names in the facts of its environment.
LIMITS = {
    "locked_memory_bytes": gettext_lazy("Locked memory at most"),
    "open_files": gettext_lazy("Open files at most"),
    "processes": gettext_lazy("Processes at most"),
    "stack_bytes": gettext_lazy("Stack size at most"),
}

# Units that are words; tps, ms and the like are the same everywhere.
UNITS = {
    "blocks": gettext_lazy("blocks"),
    "processors": gettext_lazy("processors"),
    "records": gettext_lazy("records"),
    "rows": gettext_lazy("rows"),
    "transactions": gettext_lazy("transactions"),
}

MINUTE, HOUR, DAY = 60, 3600, 86400


def quantity(value: float | None) -> str:
    """A number with the digits that say something: 12,345  987.6  12.35  0.1235  0.000371."""
    if value is None or not isfinite(value):
        return "–"
    size = abs(value)
    if 0 < size < 1e-6:
        return f"{value:.3g}"
    if 0 < size < 1:
        return f"{value:.{max(4, 2 - floor(log10(size)))}f}".rstrip("0").rstrip(".")
    if size >= 1000 or value == int(value):
        decimals = 0
    elif size >= 100:
        decimals = 1
    else:
        decimals = 2
    # English and Japanese write numbers alike; a page of hundreds feels what number_format() costs.
    return f"{round(value, decimals):,.{decimals}f}"


def estimate(value: float | None) -> str:
    """A value of the model: with four digits, so that the ratio next to it is theirs: 1.083."""
    if value is None or not 1 <= abs(value) < 10:
        return quantity(value)
    return f"{value:.3f}"


def milliseconds(value: float | None) -> str:
    """A time in milliseconds: "0.012 ms", "11,968 s"; a dash for None."""
    if value is None:
        return quantity(None)
    return f"{quantity(value)} ms" if value < 1000 else f"{quantity(value / 1000)} s"


def repeats(n: int | None) -> str:
    """How many repeats a value is based on: "n = 3"; unknown if a publication does not say."""
    return gettext("n unknown") if n is None else f"n = {n}"


def ratio(value: float | None) -> str:
    """A ratio with three decimals: 1.083."""
    return "–" if value is None or not isfinite(value) else f"{value:.3f}"


def factor(value: float | None) -> str:
    """A ratio of any size with three or more digits: 0.983, 30.2, 4,416, and 1/4,416."""
    if value is None or not isfinite(value):
        return "–"
    if 0 < value < 0.01:
        return fraction(value)
    if abs(value) < 0.1:
        return f"{value:.3g}"
    return ratio(value) if value < 10 else quantity(float(f"{value:.3g}"))


def add_unit(title: str, unit: str) -> str:
    """A title with the unit of what it names, if that has one: "Throughput (tps)"."""
    return f"{title} ({unit})" if unit else title


def change(value: float | None) -> str:
    """A ratio as a change with its sign: 1.083 is +8.3 %, and what rounds to nothing has none."""
    if value is None or not isfinite(value):
        return "–"
    text = f"{(value - 1) * 100:+.1f} %"
    return text[1:] if text[1:] == "0.0 %" else text


def change_range(ratios: Iterable[float]) -> str:
    """Several ratios as changes, from the least to the greatest: -1.9 to +2.2 %."""
    low, *others = sorted(ratios)
    texts = [change(low), change(others[-1] if others else low)]
    if texts[0] == texts[1]:
        return texts[0]
    ends = {"low": texts[0].removesuffix(" %"), "high": texts[1]}
    return gettext("%(low)s to %(high)s") % ends


def percent(value: float | None) -> str:
    """A part of one with one decimal: 0.04 is 4.0 %."""
    return "–" if value is None or not isfinite(value) else f"{value * 100:.1f} %"


def duration(value: float | timedelta | None) -> str:
    """Seconds in the two largest units that matter: 4.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if value is None:
        return "–"
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    seconds = max(seconds, 0.0)
    if seconds < 10:
        return gettext("%(seconds)s s") % {"seconds": f"{seconds:.1f}"}
    whole_seconds = round(seconds)
    if whole_seconds < MINUTE:
        return gettext("%(seconds)s s") % {"seconds": whole_seconds}
    if whole_seconds < HOUR:
        parts = {"minutes": whole_seconds // MINUTE, "seconds": whole_seconds % MINUTE}
        if not parts["seconds"]:
            return gettext("%(minutes)s min") % parts
        return gettext("%(minutes)s min %(seconds)s s") % parts
    if whole_seconds < DAY:
        parts = {
            "hours": whole_seconds // HOUR,
            "minutes": whole_seconds % HOUR // MINUTE,
        }
        return gettext("%(hours)s h %(minutes)s min") % parts
    parts = {"days": whole_seconds // DAY, "hours": whole_seconds % DAY // HOUR}
    return (
        ngettext("%(days)s day %(hours)s h", "%(days)s days %(hours)s h", parts["days"])
        % parts
    )


def about(value: float | None) -> str:
    """An estimate, which is not known to the second: 8 min 20 s, but 24 min and 2 h 5 min."""
    is_long = value is not None and value >= 10 * MINUTE
    return duration(round(value / MINUTE) * MINUTE if is_long else value)  # type: ignore[operator]


def bytesize(value: int | None) -> str:
    """Bytes in binary units, as memory is counted: 8 GiB."""
    if value is None:
        return "–"
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"


def kilobytes(value: int) -> str:
    """A size of blocks as PostgreSQL writes it: 8 kB."""
    return f"{value / 1024:g} kB"


def limit(value: int | None, name: str) -> str:
    """A limit of the processes of a machine: bytes in their units; None is no limit."""
    if value is None:
        return gettext("unlimited")
    return bytesize(value) if name.endswith("_bytes") else quantity(value)


def unbroken(text: str) -> str:
    """A sentence whose percentages stay with their signs at the end of a line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def translated(text: str) -> str:
    """An English text of an engine in the reader's language; the engine marks its texts."""
    return gettext(text) if text else ""


def worded(stored: Any) -> str:
    """Why a run or a server is as it is, in the reader's language."""
    message = getattr(stored, "message", "") or getattr(stored, "problem", "")
    return say_stored(stored.wording, message, gettext)


def noted(note: Mapping[str, Any]) -> str:
    """The message of a run's note in the reader's language."""
    return say_stored(note.get("wording", {}), note.get("message", ""), gettext)


def spoken(text: str | Mapping[str, str] | None) -> str:
    """A text that comes as data, in the reader's language: "..." or {"en": ..., "ja": ...}.

    A publication's conclusion that a discrepancy disputes is never said without what BenchLab
    computes ("computed").
    """
    if text is None or isinstance(text, str):
        return text or ""
    said = text.get((get_language() or "en")[:2]) or text.get("en", "")
    if "computed" not in text:
        return said
    is_japanese = (get_language() or "en").startswith("ja")
    words = {
        "text": said,
        "computed": text["computed_ja" if is_japanese else "computed"],
    }
    return gettext("%(text)s BenchLab computes: %(computed)s") % words


def language(wanted_language: str) -> str:
    """A language that there is: the one wanted, else the reader's own."""
    known_languages = [code for code, _name in settings.LANGUAGES]
    return (
        wanted_language
        if wanted_language in known_languages
        else (get_language() or "en")[:2]
    )


def translate_field(stored: Any, field: str) -> str:
    """A text field of a stored object in the reader's language: `title_ja` where it is filled."""
    translation = getattr(stored, f"{field}_{(get_language() or 'en')[:2]}", "")
    return str(translation or getattr(stored, field))


def publication(slug: str) -> str:
    """What people call a publication, without its subject: WG1 2021, Smalldatum 2025-09."""
    first, *others = slug.split("-")
    name = first.upper() if any(map(str.isdigit, first)) else first.capitalize()
    return _MONTH.sub("-", " ".join([name, *others]))


def term(name: str) -> str:
    """What a fact of a machine or a constant of a campaign is called: lent_by is Lent by."""
    return str(TERMS.get(name) or name.replace("_", " "))


def named(stored: Any) -> str:
    """The name of a stored object: its own Japanese one, else what the catalogue has for it."""
    translated_name = translate_field(stored, "name")
    return (
        translated(translated_name)
        if translated_name == stored.name
        else translated_name
    )


def memory(profile: Any) -> str:
    """The memory of a machine: as a publication prints it, else counted in binary units."""
    return profile.memory_printed or bytesize(profile.memory_bytes)


def place(number: str) -> str:
    """Where a publication prints something: Table 2.2, Figure 3.7, Section 3.1.2, or a name."""
    if number.startswith("図"):
        return gettext("Figure %(number)s") % {
            "number": number.removeprefix("図").strip()
        }
    # Tables are counted by chapter (2.2); what has three numbers is a section (3.1.2-1: its first).
    if match := re.fullmatch(r"\A(\d+(?:\.\d+){2,})(?:-(\d+))?", number):
        place_text = gettext("Section %(number)s") % {"number": match[1]}
        return f"{place_text} ({match[2]})" if match[2] else place_text
    if number[:1].isdigit():
        return gettext("Table %(number)s") % {"number": number}
    return number


def format_level(level: Any) -> Any:
    """A level as people write it: a duration of 60.0 s is 60."""
    return int(level) if isinstance(level, float) and level.is_integer() else level


def listed(value: Any) -> Any:
    """Several values, also by name, in one line, None if there are none; others as they are."""
    if isinstance(value, Mapping):
        return (
            "; ".join(f"{name}: {listed(item)}" for name, item in value.items()) or None
        )
    if not isinstance(value, list):
        return value
    return ", ".join(str(listed(item)) for item in value) or None


def subtract_times(
    later: datetime | None, earlier: datetime | None
) -> timedelta | None:
    """The time from the second to the first; None while one of them is not known."""
    return later - earlier if later and earlier else None


def unlocalised(value: float) -> str:
    """A number for addresses and drawings: no grouping, a point for decimals."""
    return str(value)


def tone(value: str) -> str:
    """A stored state or verdict as the name of its tone and sign: too_few is too-few."""
    return value.replace("_", "-").replace(" ", "-")


def capped(text: str, characters: int) -> str:
    """The first and last part of a long text, with a line between that says what is left out."""
    if len(text) <= characters:
        return text
    half = characters // 2
    left_out = gettext("… %(count)s characters left out …") % {
        "count": len(text) - 2 * half
    }
    return f"{text[:half]}\n{left_out}\n{text[-half:]}"
