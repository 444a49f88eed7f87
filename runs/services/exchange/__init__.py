"""Whole projects as files: export and import. The form is told in `docs/export-format.md`."""

from runs.services.exchange.exporting import lines
from runs.services.exchange.importing import Imported, load

__all__ = ["Imported", "lines", "load"]
