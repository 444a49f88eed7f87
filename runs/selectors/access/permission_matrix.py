"""The table of permissions as Markdown, for docs/security.md."""

from collections import defaultdict

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
