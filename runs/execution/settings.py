"""The settings that a server reports."""

import json

# One JSON object per line: a value may contain tabs and newlines. Works from 9.2 on.
READ_SETTINGS = """
SELECT row_to_json(s) FROM (
    SELECT name, setting, coalesce(unit, '') AS unit, source FROM pg_settings ORDER BY name
) s;
"""
# The places of the run's files, not how the server was set.
PLACES = frozenset(
    (
        "config_file",
        "data_directory",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "port",
        "primary_conninfo",
        "unix_socket_directories",
        "unix_socket_directory",
    )
)


def read_settings(printed: str) -> dict[str, dict[str, str]]:
    """The settings that READ_SETTINGS printed, by name, without the places."""
    rows = [json.loads(line) for line in printed.split("\n") if line]
    return {row.pop("name"): row for row in rows if row["name"] not in PLACES}
