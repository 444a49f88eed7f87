"""System checks: report a misconfiguration at start, with what to do, and not during a run."""

from collections.abc import Sequence
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import Error, Tags, register


@register(Tags.security)
def secrets_are_set(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[Error]:
    """SECRET_KEY and a well-formed BENCHLAB_ENCRYPTION_KEY are there."""
    problems = []
    if not settings.SECRET_KEY:
        problems.append(
            Error(
                "SECRET_KEY is not set.",
                hint="Set it in the environment; script/server generates one in var/.",
                id="runs.E001",
            )
        )
    try:
        # One key, or several between commas: the first encrypts, all of them decrypt.
        for key in settings.ENCRYPTION_KEY.split(","):
            Fernet(key.strip())
    except ValueError:
        problems.append(
            Error(
                "BENCHLAB_ENCRYPTION_KEY is missing or is not a Fernet key.",
                hint="Generate one: python -c 'from cryptography.fernet import Fernet; "
                "print(Fernet.generate_key().decode())'",
                id="runs.E002",
            )
        )
    return problems
