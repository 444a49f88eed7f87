"""Which version of the tool knows what. Versions are numbers as in server_version_num."""

PROGRESS = RATE = 90400
EXPRESSIONS = 90500
RANDOM_FUNCTIONS = SCRIPT_WEIGHTS = ANY_THREADS = 90600
QUIET_INITIALISATION = LOG_SAMPLING = 90300
CONTINUED_COMMANDS = LOG_PREFIX = 100000
RANDOM_SEED = 110000
USER_TIMEOUT = 120000
PARTITIONS = 130000
MAXIMUM_TRIES = 150000


class UnsupportedByToolError(ValueError):
    """What was asked for cannot be run, or not by this version of pgbench; the message says why."""


def version_text(version: int) -> str:
    """Return "9.6" for 90600 and "16" for 160000."""
    if version >= 100000:
        return str(version // 10000)
    return f"{version // 10000}.{version // 100 % 100}"


def release_text(version: int) -> str:
    """Return "9.6.24" for 90624 and "16.14" for 160014."""
    patch_number = version % 100 if version < 100000 else version % 10000
    return f"{version_text(version)}.{patch_number}"


def require(client_version: int, since: int, usage: str) -> None:
    """Raise UnsupportedByToolError if the tool is older than `usage`."""
    if client_version < since:
        raise UnsupportedByToolError(
            f"{usage} needs pgbench {version_text(since)} or later; "
            f"this one is {version_text(client_version)}."
        )
