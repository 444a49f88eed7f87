"""The archive: keeps the database in step with the archive's data files."""

from runs.archive.services.publications import Loaded, load
