"""Uploads: results measured elsewhere, stored as runs; all of a request, or nothing."""

from runs.uploads.services.idempotency import once
from runs.uploads.services.known import StoredRun
from runs.uploads.services.store import store
from runs.uploads.services.uploaded_run import (
    GivenMeasurement,
    GivenMergeBase,
    GivenProfile,
    GivenRevision,
    GivenRun,
)
