"""System checks: report a misconfiguration at start, with what to do, and not during a run."""

from collections.abc import Sequence
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core import checks
from django.core.checks import Error, Tags, register
from django.urls import URLResolver, get_resolver

from runs.access.selectors.permission_table import ADDRESSES


@register(Tags.urls)
def addresses_have_rules(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[checks.Warning]:
    """Every address is in the table of permissions; whoever adds one says who may use it."""
    known = ADDRESSES
    return [
        checks.Warning(
            f"The address {name} has no rule: nobody may use it.",
            hint="Add it to ADDRESSES in runs/access/selectors/permission_table.py.",
            id="runs.W003",
        )
        for name in sorted(addresses() - known.keys())
    ]


def addresses() -> set[str]:
    """The names of all addresses of the site, with their namespace."""
    found: set[str] = set()
    waiting: list[tuple[str, Any]] = [("", each) for each in get_resolver().url_patterns]
    while waiting:
        space, pattern = waiting.pop()
        if isinstance(pattern, URLResolver):
            below = f"{space}{pattern.namespace}:" if pattern.namespace else space
            waiting += [(below, each) for each in pattern.url_patterns]
        else:
            found.add(f"{space}{pattern.name or pattern.pattern}")
    return found


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
