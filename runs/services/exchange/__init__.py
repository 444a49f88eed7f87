"""Export and import of complete projects as files; `docs/export-format.md` describes the form."""

from runs.services.exchange.exporting import lines
from runs.services.exchange.results import Imported, load
