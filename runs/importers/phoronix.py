"""Phoronix Test Suite: composite.xml of a result (~/.phoronix-test-suite/test-results/NAME/).

Source: the documentation of the test suite ("Result file") and published results. Each system of
the file is a run, each result a metric.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from runs.importers import row
from runs.tools.adapter import Direction, MetricValue
from runs.tools.named_values import MOST, marked
from runs.wording import gettext_noop as _

_DIRECTIONS: dict[str, Direction] = {"HIB": "higher", "LIB": "lower"}
_ENTITIES = re.compile(rb"<!(?:DOCTYPE|ENTITY)")


def read(path: Path) -> row.Imported:
    """Read the file, or composite.xml in the folder. Raises row.NotTheirs."""
    file = path / "composite.xml" if path.is_dir() else path
    content = file.read_bytes()
    if _ENTITIES.search(content):
        raise row.NotTheirs(_("The file declares entities, which a result file never does."))
    try:
        root = ElementTree.fromstring(content)  # noqa: S314 -- no entities, see above
    except ElementTree.ParseError as error:
        raise row.NotTheirs(_("This is not XML: %(error)s"), error=error) from error
    if root.tag != "PhoronixTestSuite":
        raise row.NotTheirs(_("The outermost element is not PhoronixTestSuite."))
    found = row.Imported()
    title = _text(root, "Generated/Title") or file.parent.name
    for system in root.findall("System"):
        _take(root, system, title, found)
    return found


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _take(root: Element, system: Element, title: str, found: row.Imported) -> None:
    name = _text(system, "Identifier")
    at = row.moment(_text(system, "TimeStamp"))
    if not name or at is None:
        found.leave_out(_("A system (%(name)s) without a name or a time."), name=name or "?")
        return
    values = list(_values(root, name, found))
    model = _text(system, "Hardware").partition(",")[0].removeprefix("Processor:").strip()[:200]
    found.take(
        campaign=row.campaign_of("phoronix", title),
        scenario="phoronix",
        external_id=f"{name}@{at.isoformat()}"[:200],
        started_at=at,
        levels={"system": name[:80]},
        measurements=tuple(values[:MOST]),
        labels=row.texts({"software": _text(system, "Software"), "notes": _text(system, "Notes")}),
        hardware=row.processor(model),
        tool_name="phoronix",
        tool_version=_text(system, "TestClientVersion")[:40],
        failure="" if values else "The system has no result.",
    )


def _values(root: Element, system: str, found: row.Imported) -> Iterator[MetricValue]:
    results = root.findall("Result")
    names = [f"{_text(each, 'Title')} {_text(each, 'Description')}".strip() for each in results]
    alike = marked(names) | {name for name in names if names.count(name) > 1}
    for place, (name, result) in enumerate(zip(names, results, strict=True)):
        own = f"{name} {_text(result, 'Identifier')} {place}" if names.count(name) > 1 else name
        direction = _DIRECTIONS.get(_text(result, "Proportion"))
        metric = row.named(own, _text(result, "Scale"), direction, is_marked=name in alike)
        for entry in result.findall("Data/Entry"):
            if _text(entry, "Identifier") == system:
                values = row.value_of(metric, _text(entry, "Value"))
                if not values:
                    text = _("%(system)s: %(name)s has no number.")
                    found.leave_out(text, system=system, name=name)
                yield from values
