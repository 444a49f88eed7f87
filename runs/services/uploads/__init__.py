"""Uploads: results that were measured elsewhere, stored as runs; all of a request, or nothing."""

from runs.services.uploads.given import (
    GivenMeasurement,
    GivenProfile,
    GivenRevision,
    GivenRun,
    GivenSeries,
)
from runs.services.uploads.once import KeyReused, Stored, once
from runs.services.uploads.store import StoredRun, store

__all__ = [
    "GivenMeasurement",
    "GivenProfile",
    "GivenRevision",
    "GivenRun",
    "GivenSeries",
    "KeyReused",
    "Stored",
    "StoredRun",
    "once",
    "store",
]
