"""The CI job that made a run, as its uploader labels it."""

from collections.abc import Mapping
from typing import Any

JOB_URL = "job_url"


def address(labels: Mapping[str, Any]) -> str:
    """The address of the job; only one of the web, otherwise nothing."""
    text = str(labels.get(JOB_URL, ""))
    is_one = text.startswith(("https://", "http://")) and len(text.split()) == 1
    return text if is_one else ""
