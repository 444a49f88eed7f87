"""Whether any request grows with the database, an axis at a time.

    nice .venv/bin/python -m benchmarks.cost [--pairs 60] [--axes private cells]
        [--readers anonymous member administrator]

The gate that runs with the tests (`tests/domain/cost`), in a larger database: each axis grows
tenfold in a copy of it, and every address is asked as each reader. Prints a table of axes, and what
costs more than it may.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import services

BASE, COPY = "base", "shape"


def main() -> None:
    """Measure all axes in a PostgreSQL of its own, and print what grew."""
    options = _options()
    # It would keep connections to the database that was used first.
    os.environ["BENCHLAB_DATABASE_POOL"] = "0"
    with (
        tempfile.TemporaryDirectory(prefix="bl-") as folder,
        services.instance(Path(folder)),
    ):
        services.migrate()
        from tests.domain.cost import axes, database  # noqa: PLC0415 -- needs Django set up

        _copy("benchlab", BASE)
        with _database(BASE):
            database.grow(options.pairs)
            database.files()
            axes.base()
            _execute("VACUUM (ANALYZE)")
        faults = list(_axes(options))
    print("\n".join(faults))
    raise SystemExit(bool(faults))


def _axes(options: argparse.Namespace) -> Iterator[str]:
    from tests.domain.cost import addresses, axes, database, gate  # noqa: PLC0415

    asked = list(dict.fromkeys([*addresses.addresses(), *addresses.OF_SHAPES]))
    readers = options.readers or gate.READERS
    with gate.short_lists():
        with _database(BASE):
            known = database.known()
            small = {each: gate.measure(known, asked, each) for each in readers}
        print(f"| axis | {' | '.join(readers)} | s |\n|---|{'--:|' * len(readers)}--:|")
        for axis in options.axes or axes.AXES:
            began, counts = time.monotonic(), []
            _copy(BASE, COPY)
            with _database(COPY):
                axes.grow(axis)
                _execute("VACUUM (ANALYZE)")
            with _database(COPY):
                for reader in readers:
                    large = gate.measure(known, asked, reader)
                    found = gate.grown_by(axis, small[reader], large)
                    counts.append(f"{len(found)} of {len(large)}")
                    yield from (f"{axis}, {reader}: {each}" for each in found)
            told = " | ".join(counts)
            print(f"| {axis} | {told} | {time.monotonic() - began:.0f} |", flush=True)


@contextmanager
def _database(name: str) -> Iterator[None]:
    """Use another database of the same server."""
    from django.db import connection  # noqa: PLC0415

    connection.close()
    before = connection.settings_dict["NAME"]
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before


def _copy(source: str, name: str) -> None:
    with _database("postgres"):
        _execute(
            f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'",
            f"CREATE DATABASE {name} TEMPLATE {source}",
        )


def _execute(*statements: str) -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "--pairs", type=int, default=60, help="campaigns of the database"
    )
    parser.add_argument("--axes", nargs="+", default=(), help="only these")
    parser.add_argument(
        "--readers", nargs="+", default=(), help="anonymous, member, administrator"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
