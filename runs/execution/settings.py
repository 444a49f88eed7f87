"""The settings that a server reports, and the extensions that it offers."""

import json

# One JSON object per line: a value may contain tabs and newlines. Works from 9.2 on. Both at once,
# since each step costs the run some hundredths of a second.
READ_SETTINGS = """
SELECT row_to_json(s) FROM (
    SELECT name, setting, coalesce(unit, '') AS unit, source FROM pg_settings ORDER BY name
) s;
SELECT row_to_json(e) FROM (
    SELECT name AS extension FROM pg_available_extensions ORDER BY name
) e;
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
    rows = [row for row in _rows(printed) if "name" in row]
    return {row.pop("name"): row for row in rows if row["name"] not in PLACES}


def read_extensions(printed: str) -> frozenset[str]:
    """The names of the extensions that READ_SETTINGS printed."""
    return frozenset(row["extension"] for row in _rows(printed) if "extension" in row)


def _rows(printed: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in printed.split("\n") if line]
