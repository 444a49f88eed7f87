"""Prints who may do what, as docs/security.md has it."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.selectors.access.rights import ADDRESSES, GRANTS, Right, Role

BEGIN, END = "<!-- permissions: begin -->\n", "<!-- permissions: end -->\n"
ROLES = (
    (Role.ANYBODY, "anybody"),
    (Role.PERSON, "logged in"),
    (Role.VIEWER, "viewer"),
    (Role.OPERATOR, "operator"),
    (Role.MAINTAINER, "maintainer"),
    (Role.ADMINISTRATOR, "administrator"),
)


def markdown() -> str:
    """Which role has which right, and which right each address needs."""
    head = ["right", "scope of a token", *(name for _role, name in ROLES)]
    lines = [_row(head), _row(["---"] * len(head))]
    for right, grant in GRANTS.items():
        ticks = ["yes" if role >= grant.role else "" for role, _name in ROLES]
        lines.append(_row([right.value, f"`{grant.scope.value}`", *ticks]))
    lines += ["", _row(["right", "addresses"]), _row(["---"] * 2)]
    lines += [_row([right.value, ", ".join(found)]) for right, found in _addresses().items()]
    return "\n".join(lines) + "\n"


def put_into(text: str) -> str:
    """The text with the current table between its marks. Raises ValueError without marks."""
    before, rest = text[: text.index(BEGIN)], text[text.index(END) :]
    return f"{before}{BEGIN}\n{markdown()}\n{rest}"


def _addresses() -> dict[Right, list[str]]:
    found: dict[Right, list[str]] = defaultdict(list)
    for address, rules in ADDRESSES.items():
        methods: dict[Right, list[str]] = defaultdict(list)
        for method, right in rules.items():
            methods[right].append(method)
        for right, names in methods.items():
            found[right].append(f"{'/'.join(names)} `{address}`")
    return {right: found[right] for right in GRANTS if found[right]}


def _row(cells: list[str]) -> str:
    return " ".join(f"| {cell}".rstrip() for cell in cells) + " |"


PLACE = Path(settings.BASE_DIR) / "docs" / "security.md"


class Command(BaseCommand):
    """The matrix of rights and addresses; `--write` puts it into docs/security.md."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """Write, or only check."""
        parser.add_argument("--write", action="store_true", help="write it into docs/security.md")
        parser.add_argument(
            "--check", action="store_true", help="check that docs/security.md has it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, write or check."""
        text = PLACE.read_text()
        current = put_into(text)
        if options["write"]:
            PLACE.write_text(current)
        elif not options["check"]:
            self.stdout.write(markdown())
        elif current != text:
            raise CommandError(f"{PLACE.name} is old: manage.py permissions --write")
