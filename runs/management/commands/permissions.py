"""Prints who may do what; docs/security.md has its first table."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.access.addresses import loaded
from runs.access.selectors.permission_table import GRANTS, Right, Role

BEGIN, END = "<!-- permissions: begin -->\n", "<!-- permissions: end -->\n"
ROLES = {role: role.name.lower() for role in Role} | {Role.PERSON: "logged in"}


def rights() -> str:
    """The lowest role of each right, and the scope that a token needs for it."""
    lines = [_row(["right", "scope of a token", "lowest role"]), _row(["---"] * 3)]
    for right, grant in GRANTS.items():
        lines.append(_row([right.value, f"`{grant.scope.value}`", ROLES[grant.role]]))
    return "\n".join(lines) + "\n"


def addresses() -> str:
    """Of each right the addresses that need it."""
    addresses_of: dict[Right, list[str]] = defaultdict(list)
    for address, rules in sorted(loaded().items()):
        for method, right in rules.rights.items():
            addresses_of[right].append(f"{method} `{address}`")
    lines = [_row(["right", "addresses"]), _row(["---"] * 2)]
    lines += [
        _row([right.value, ", ".join(addresses_of[right])])
        for right in GRANTS
        if addresses_of[right]
    ]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return " ".join(f"| {cell}".rstrip() for cell in cells) + " |"


PLACE = Path(settings.BASE_DIR) / "docs" / "security.md"


class Command(BaseCommand):
    """The lowest role of each right, and its addresses; `--write` puts the roles into docs."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--write", action="store_true", help="write them into docs/security.md"
        )
        parser.add_argument(
            "--check", action="store_true", help="check that docs/security.md has them"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        text = PLACE.read_text()
        # The text with the current rights between its marks. Raises ValueError without marks.
        before, rest_of_text = text[: text.index(BEGIN)], text[text.index(END) :]
        current = f"{before}{BEGIN}\n{rights()}\n{rest_of_text}"
        if options["write"]:
            PLACE.write_text(current)
        elif not options["check"]:
            self.stdout.write(f"{rights()}\n{addresses()}")
        elif current != text:
            raise CommandError(f"{PLACE.name} is old: manage.py permissions --write")
