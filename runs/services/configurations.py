"""Configurations: named PostgreSQL settings, one row per name, one hash per content."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from django.db import transaction

from runs.models import Configuration

# After the settings that the WG1 reports print, shrunk to a machine of everyday size, and only
# with names that every version from 9.2 on knows.
FIXED_POINT = {
    "shared_buffers": "512MB",
    "max_connections": "500",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",
    "checkpoint_timeout": "60min",
    "checkpoint_completion_target": "0.9",
    "autovacuum": "off",
    "log_checkpoints": "on",
    "log_lock_waits": "on",
}


@transaction.atomic
def built_in() -> Configuration:
    """The configuration of a campaign that names none."""
    return store(
        slug="fixed-point-small",
        name="Fixed-point observation, small machine",
        description="After the settings of the WG1 reports; all data of a small scale in memory.",
        settings=FIXED_POINT,
        initdb_options=[],
    )


@transaction.atomic
def store(
    *,
    slug: str,
    name: str,
    description: str,
    settings: Mapping[str, str],
    initdb_options: Sequence[str],
) -> Configuration:
    """Make a configuration, or bring the one of that slug up to date."""
    content = json.dumps([dict(settings), list(initdb_options)], sort_keys=True)
    configuration, _created = Configuration.objects.update_or_create(
        slug=slug,
        defaults={
            "name": name,
            "description": description,
            "settings": dict(settings),
            "initdb_options": list(initdb_options),
            "content_hash": hashlib.sha256(content.encode()).hexdigest(),
        },
    )
    return configuration
