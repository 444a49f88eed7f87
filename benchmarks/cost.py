"""Whether any request grows with the database: SQL statements and buffers read, at several sizes.

    .venv/bin/python -m benchmarks.cost [--runs 10000 100000] [--write] [--folder F]

Each address of the API that lists something is asked with each of its documented filters, and each
page, in a database that grows from one size to the next. The limit is the same however much it
grows. What is asked for lies where it is dearest to
find: in the oldest rows, in few of them, or nowhere. Each statement is then explained with its
buffers, which are the same on a busy machine. A small form of it runs with the tests
(`tests/domain/test_constraints.py`), where an address without an entry here fails.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_GROWTH = 1.2
# What is found row by row in a large table, and by reading all of it in a small one: a hundred rows
# of a list, and the figures of the dozen campaigns that the line through versions is made of.
SLACK, SLACK_OF_PAGE = 400, 1500

# What docs/performance.md has of it.
BEGIN, END = "<!-- written by benchmarks.cost -->", "<!-- end -->"

Values = Mapping[str, Sequence[str]]

# What each filter of a list is asked for. Every filter of the API's schema has its place here.
LISTS: Mapping[str, Values] = {
    "campaigns": {
        "origin": ("executed", "uploaded", "published"),
        "scenario": ("fixed-point-read", "nothing"),
        "state": ("finished", "queued"),
    },
    "bisections": {},
    "changes": {
        "campaign": ("ci-00000",),
        "decision": ("open",),
        "kind": ("step",),
        "metric": ("tps", "nothing"),
    },
    "configurations": {"origin": ("own",), "setting": ("work_mem",)},
    "hardware": {
        "cpu_model": ("nothing",),
        "server": ("lab-1",),
        "source": ("wg1-2013",),
        "virtualization": ("kvm",),
    },
    "measurements": {
        "campaign": ("lab-00000", "ci-00000", "nothing"),
        "metric": ("tps", "rare", "nothing"),
        "origin": ("executed", "uploaded", "published"),
        "run": ("1", "1000000000"),
        "source": ("wg1-2013", "nothing"),
        "table": ("2.2", "nothing"),
        "version": ("16", "18.1", "9.4", "9.4.26", "8.4", "9"),
    },
    "runs": {
        "campaign": ("lab-00000", "ci-00000", "nothing"),
        "hardware": ("cost", "rare", "nothing"),
        "origin": ("executed", "uploaded", "published"),
        "server": ("lab-1", "nothing"),
        "state": ("finished", "failed", "queued", "lost"),
        "validity": ("valid", "doubtful", "invalid"),
        "version": ("16", "18.1", "9.4", "9.4.26", "8.4", "9"),
    },
    "scenarios": {"runnable": ("true", "false")},
    "schedules": {},
    "servers": {"hardware": ("cost",), "state": ("ready", "refused")},
    "sources": {},
}
PAGES = (
    *("/", "/campaigns/lab-00000/", "/campaigns/ci-00000/", "/campaigns/ci-00000/history/"),
    *("/runs/1/", "/versions/", "/compare/", "/archive/", "/servers/", "/hardware/"),
    *("/topologies/", "/configurations/", "/scenarios/", "/schedules/", "/workloads/"),
    "/api/v1/history/?campaign=ci-00000&level=clients=8",
    "/api/v1/compare/?base=campaign:lab-00000&head=campaign:lab-00001",
)
# Lists that only people with a right see: nothing of theirs comes with runs.
FOR_PEOPLE = {"audit", "webhooks"}


@dataclass(frozen=True)
class Cost:
    """What a request asked of PostgreSQL."""

    statements: int
    buffers: int

    def allows(self, larger: "Cost", slack: int = SLACK) -> bool:
        """Whether the same request may cost so much in a larger database."""
        most = max(MOST_GROWTH * self.buffers, self.buffers + slack)
        return larger.statements <= self.statements and larger.buffers <= most


def addresses() -> Iterator[str]:
    """All that is asked for."""
    for name, filters in LISTS.items():
        yield f"/api/v1/{name}/"
        for each, values in filters.items():
            yield from (f"/api/v1/{name}/?{each}={value}" for value in values)
    yield from PAGES


def missing() -> list[str]:
    """Lists of the API, and filters of them, that have no entry here."""
    from drf_spectacular.generators import SchemaGenerator  # noqa: PLC0415

    paging = {"cursor", "page_size", "format"}
    schema: Any = SchemaGenerator().get_schema(request=None, public=True)
    found = []
    for path, operations in schema["paths"].items():
        name = path.removeprefix("/api/v1/").rstrip("/")
        operation = operations.get("get")
        is_asked = operation and "{" not in path and name not in FOR_PEOPLE
        if not is_asked or not _is_list(operation):
            continue
        asked = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        known = set(LISTS.get(name, {})) if name in LISTS else None
        found += [name] if known is None else [f"{name}?{each}" for each in asked - paging - known]
    return sorted(found)


def _is_list(operation: Mapping[str, Any]) -> bool:
    return any(each["name"] == "cursor" for each in operation.get("parameters", ()))


def measure(only: Sequence[str] = ()) -> dict[str, Cost]:
    """The cost of each address, or of a few, as an anonymous reader asks for it."""
    from django.test import Client  # noqa: PLC0415

    client = Client()
    return {address: _cost(client, address) for address in only or addresses()}


def _cost(client: Any, address: str) -> Cost:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
    if response.status_code >= 400 and response.status_code != 404:
        raise SystemExit(f"{address}: {response.status_code} {response.content[:300]!r}")
    asked = [query["sql"] for query in captured.captured_queries]
    reads = [sql for sql in asked if sql.lstrip("( \n").startswith(("SELECT", "WITH"))]
    return Cost(len(asked), sum(map(buffers, reads)))


def buffers(sql: str) -> int:
    """How many buffers a statement reads, from the cache or not. Executes it."""
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        told = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}"
        cursor.execute(told.replace("%", "%%"), ())
        (found,) = cursor.fetchone()
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def grown(small: Mapping[str, Cost], large: Mapping[str, Cost]) -> list[str]:
    """What costs more in the larger database than it may."""
    return [
        f"{address}: {small[address]} -> {large[address]}"
        for address in small
        if not small[address].allows(large[address], _slack(address))
    ]


def _slack(address: str) -> int:
    return SLACK_OF_PAGE if address in PAGES else SLACK


def table(sizes: Mapping[int, Mapping[str, Cost]]) -> str:
    """All sizes in runs, the smallest first, for docs/performance.md."""
    small, *larger = sizes.values()
    heads = " | ".join(f"{size:,} runs" for size in sizes)
    lines = [f"| address | statements | {heads} | |", f"|---|--:|{'--:|' * len(sizes)}---|"]
    for address, cost in small.items():
        is_good = all(cost.allows(each[address], _slack(address)) for each in larger)
        verdict = "ok" if is_good else "grows"
        buffers_read = " | ".join(f"{each[address].buffers:,}" for each in sizes.values())
        lines.append(f"| `{address}` | {cost.statements} | {buffers_read} | {verdict} |")
    return "\n".join(lines)


def _write(told: str) -> None:
    path = Path(__file__).parents[1] / "docs" / "performance.md"
    before, _old, after = path.read_text().partition(BEGIN)
    _old, _end, after = after.partition(END)
    path.write_text(f"{before}{BEGIN}\n{told}\n\n{END}{after}")


def main() -> None:
    """Measure all sizes in a PostgreSQL of its own, and print the table."""
    from benchmarks import pages  # noqa: PLC0415

    options = _options()
    with pages.instance(options.folder):
        pages.migrate()
        from benchmarks import cost_database  # noqa: PLC0415 -- needs Django set up

        sizes = {}
        for size in options.runs:
            cost_database.grow(max(1, size // cost_database.RUNS_OF_TWO))
            sizes[size] = measure()
    told = table(sizes)
    print(told)
    if options.write:
        _write(told)
    small, *larger = sizes.values()
    if faults := [fault for each in larger for fault in grown(small, each)]:
        raise SystemExit("\n".join(faults))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--runs", type=int, nargs="+", default=[10_000, 100_000], help="sizes, the smallest first"
    )
    parser.add_argument("--write", action="store_true", help="put it into docs/performance.md")
    parser.add_argument("--folder", type=Path, help="keep the database here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
