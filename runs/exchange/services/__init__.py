"""Export and import of complete projects as files; `docs/export-format.md` describes the form."""

from runs.exchange.services.exporting import lines
from runs.exchange.services.results import Imported, load
