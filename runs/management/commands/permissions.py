"""Prints who may do what, as docs/security.md has it."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.selectors.access.rights import ADDRESSES, GRANTS, Right, Role

BEGIN, END = "<!-- permissions: begin -->\n", "<!-- permissions: end -->\n"
ROLES = {
    Role.ANYBODY: "anybody",
    Role.PERSON: "logged in",
    Role.VIEWER: "viewer",
    Role.OPERATOR: "operator",
    Role.MAINTAINER: "maintainer",
    Role.ADMINISTRATOR: "administrator",
}


def markdown() -> str:
    """The lowest role of each right, and which right each address needs."""
    lines = [_row(["right", "scope of a token", "lowest role"]), _row(["---"] * 3)]
    for right, grant in GRANTS.items():
        lines.append(_row([right.value, f"`{grant.scope.value}`", ROLES[grant.role]]))
    lines += ["", _row(["right", "addresses"]), _row(["---"] * 2)]
    lines += [_row([right.value, found]) for right, found in _addresses().items()]
    return "\n".join(lines) + "\n"


def put_into(text: str) -> str:
    """The text with the current table between its marks. Raises ValueError without marks."""
    before, rest = text[: text.index(BEGIN)], text[text.index(END) :]
    return f"{before}{BEGIN}\n{markdown()}\n{rest}"


def _addresses() -> dict[Right, str]:
    """Of each right its addresses, by the methods that need it."""
    found: dict[Right, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for address, rules in ADDRESSES.items():
        methods: dict[Right, list[str]] = defaultdict(list)
        for method, right in rules.items():
            methods[right].append(method)
        for right, names in methods.items():
            found[right]["/".join(names)].append(f"`{address}`")
    return {
        right: "; ".join(f"{methods}: {', '.join(each)}" for methods, each in found[right].items())
        for right in GRANTS
        if found[right]
    }


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
