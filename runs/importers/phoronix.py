"""Phoronix Test Suite: composite.xml of a result (~/.phoronix-test-suite/test-results/NAME/).

Source: the documentation of the test suite ("Result file") and published results. Each system of
the file is a run, each result a metric.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from runs.grouping import group_by_key
from runs.importers import row, strict_xml
from runs.tools.adapter import Direction, MetricValue
from runs.tools.metrics import Metric
from runs.tools.named_values import MOST, marked
from runs.wording import gettext_noop as _

_DIRECTIONS: dict[str, Direction] = {"HIB": "higher", "LIB": "lower"}


@dataclass(frozen=True)
class _Entry:
    """A figure of one system: of which result, and as it is written."""

    name: str
    metric: Metric
    value: str


def read(path: Path) -> row.Imported:
    """Read the file, or composite.xml in the folder. Raises row.NotTheirs."""
    file = path / "composite.xml" if path.is_dir() else path
    try:
        root = strict_xml.root_of(file.read_bytes())
    except strict_xml.EntitiesError as error:
        raise row.NotTheirs(
            _("The file declares entities, which a result file never does.")
        ) from error
    except ElementTree.ParseError as error:
        raise row.NotTheirs(_("This is not XML: %(error)s"), error=error) from error
    if root.tag != "PhoronixTestSuite":
        raise row.NotTheirs(_("The outermost element is not PhoronixTestSuite."))
    imported = row.Imported()
    title = _text(root, "Generated/Title") or file.parent.name
    systems = root.findall("System")
    names = {_text(system, "Identifier") for system in systems}
    figures = {
        name: tuple(_values(entries, name, imported))[:MOST]
        for name, entries in group_by_key(_entries(root)).items()
        if name in names
    }
    for system in systems:
        _take(figures, system, title, imported)
    return imported


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _take(
    figures: dict[str, tuple[MetricValue, ...]],
    system: Element,
    title: str,
    imported: row.Imported,
) -> None:
    name = _text(system, "Identifier")
    moment = row.moment(_text(system, "TimeStamp"))
    if not name or moment is None:
        imported.leave_out(
            _("A system (%(name)s) without a name or a time."), name=name or "?"
        )
        return
    values = figures.get(name, ())
    model = (
        _text(system, "Hardware")
        .partition(",")[0]
        .removeprefix("Processor:")
        .strip()[:200]
    )
    imported.take(
        campaign=row.campaign_of("phoronix", title),
        scenario="phoronix",
        external_id=f"{name}@{moment.isoformat()}"[:200],
        started_at=moment,
        levels={"system": name[:80]},
        measurements=values,
        labels=row.texts(
            {"software": _text(system, "Software"), "notes": _text(system, "Notes")}
        ),
        hardware=row.processor(model),
        tool_name="phoronix",
        tool_version=_text(system, "TestClientVersion")[:40],
        failure="" if values else "The system has no result.",
    )


def _entries(root: Element) -> Iterator[tuple[str, _Entry]]:
    """The figures of all results, each with the name of its system."""
    # What was not measured is there as well, and empty.
    results = [
        result
        for result in root.findall("Result")
        if result.find("Data/Entry") is not None
    ]
    names = [
        f"{_text(result_element, 'Title')} {_text(result_element, 'Description')}".strip()
        for result_element in results
    ]
    counts = Counter(names)
    alike = marked(names) | {name for name, count in counts.items() if count > 1}
    for place, (name, result) in enumerate(zip(names, results, strict=True)):
        entry_name = (
            f"{name} {_text(result, 'Identifier')} {place}"
            if counts[name] > 1
            else name
        )
        direction = _DIRECTIONS.get(_text(result, "Proportion"))
        metric = row.named(
            entry_name, _text(result, "Scale"), direction, is_marked=name in alike
        )
        for entry in result.findall("Data/Entry"):
            yield (
                _text(entry, "Identifier"),
                _Entry(name, metric, _text(entry, "Value")),
            )


def _values(
    entries: list[_Entry], system: str, imported: row.Imported
) -> Iterator[MetricValue]:
    for entry in entries:
        values = row.value_of(entry.metric, entry.value)
        if not values:
            text = _("%(system)s: %(name)s has no number.")
            imported.leave_out(text, system=system, name=entry.name)
        yield from values
