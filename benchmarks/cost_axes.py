"""Whether any request grows on an axis: each of `cost_shapes` made ten times larger by itself.

    nice .venv/bin/python -m benchmarks.cost_axes [--pairs 60] [--size 1] [--axes private cells]
        [--readers anonymous member administrator] [--stale]

Each axis grows in a copy of one database, and all addresses are asked as each reader. `--stale`
leaves the statistics as they were before. `--size` is how many times as large the parts of all axes
are. Prints what costs more than it may, and a table of axes.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import cost, pages

BASE, COPY = "base", "shape"


def main() -> None:
    """Measure all axes in a PostgreSQL of its own, and print what grew."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="bl-") as folder, pages.instance(Path(folder)):
        _without_pool()
        pages.migrate()
        from benchmarks import cost_database, cost_shapes  # noqa: PLC0415 -- needs Django set up

        with cost_shapes.parts_of(options.size):
            _copy("benchlab", BASE)
            with _database(BASE):
                cost_database.grow(options.pairs)
                cost_database.files()
                cost_shapes.base()
                _vacuum("VACUUM (ANALYZE)")
            faults = list(_axes(options))
    print("\n".join(faults))
    raise SystemExit(bool(faults))


def _axes(options: argparse.Namespace) -> Iterator[str]:
    from benchmarks import cost_addresses, cost_database, cost_shapes  # noqa: PLC0415

    asked = list(dict.fromkeys([*cost_addresses.addresses(), *cost_addresses.OF_SHAPES]))
    with cost.short_lists():
        with _database(BASE):
            known = cost_database.known()
            small = {each: cost.measure(known, asked, each) for each in options.readers}
        print(f"| axis | {' | '.join(options.readers)} | s |\n|---|{'--:|' * len(small)}--:|")
        for axis in options.axes or cost_shapes.AXES:
            began, counts = time.monotonic(), []
            _copy(BASE, COPY)
            with _database(COPY):
                cost_shapes.grow(axis)
                _vacuum("VACUUM" if options.stale else "VACUUM (ANALYZE)")
            with _database(COPY):
                for reader in options.readers:
                    large = cost.measure(known, asked, reader)
                    declared = cost_addresses.STALE.get(axis, ()) if options.stale else ()
                    found = cost.grown_by(axis, small[reader], large, declared)
                    counts.append(f"{len(found)} of {len(large)}")
                    yield from (f"{axis}, {reader}: {each}" for each in found)
            told = " | ".join(counts)
            print(f"| {axis} | {told} | {time.monotonic() - began:.0f} |", flush=True)


def _without_pool() -> None:
    """A pool keeps connections to the database that was used first."""
    from django.db import connection  # noqa: PLC0415

    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL
    connection.settings_dict["OPTIONS"].pop("pool", None)


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
    others = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'"
    with _database("postgres"):
        _execute(
            f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
            others,
            f"CREATE DATABASE {name} TEMPLATE {source}",
        )


def _vacuum(statement: str) -> None:
    _execute(statement)


def _execute(*statements: str) -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def _options(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=60, help="campaigns of the database")
    parser.add_argument("--size", type=int, default=1, help="times the parts of the axes")
    parser.add_argument("--axes", nargs="+", default=(), help="only these")
    parser.add_argument("--readers", nargs="+", default=cost.READERS, choices=cost.READERS)
    parser.add_argument("--stale", action="store_true", help="statistics of before")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
