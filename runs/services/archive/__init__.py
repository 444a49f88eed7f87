"""The archive: keeps the database in step with the archive's data files."""

from runs.services.archive.publications import Loaded, load
