"""Uploads: results measured elsewhere, stored as runs; all of a request, or nothing."""

from runs.services.uploads.idempotency import once
from runs.services.uploads.store import StoredRun, store
from runs.services.uploads.uploaded_run import (
    GivenMeasurement,
    GivenProfile,
    GivenRevision,
    GivenRun,
)
