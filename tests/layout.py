"""Refuses what makes code short and hard to read, and says what to write in its place.

`python -m tests.layout` reads all Python files of the repository but landed migrations; script/lint
calls it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# So many names a target binds at most side by side, and so many with those of the tuples within it.
MOST_UNPACKED, MOST_IN_ALL = 3, 5
# What these give is a tuple by its nature: columns side by side, a line's words, a match's groups.
GIVE_TUPLES = {"zip", "split", "groups", "fwalk", "get_opcodes", "deconstruct"}
# A function's name begins with a verb; of these a format's (from_json, as_text) is a known word.
PREPOSITIONS = [
    "of",
    "by",
    "at",
    "in",
    "on",
    "for",
    "with",
    "without",
    "under",
    "beside",
    "between",
    "above",
    "below",
    "after",
    "before",
    "into",
    "over",
    "beyond",
    "among",
    "since",
    "until",
    "near",
    "per",
    "like",
]
# Migrations that have landed name it.
LANDED_NAMES = {"in_steps"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _targets(node: ast.AST) -> tuple[list[ast.expr], ast.expr | None]:
    """What the node binds, and of what."""
    if isinstance(node, ast.Assign):
        return node.targets, node.value
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        return [node.target], node.iter
    return [], None


def _gives_tuples(source: ast.expr | None) -> bool:
    if isinstance(source, ast.Call):
        name = getattr(source.func, "id", None) or getattr(source.func, "attr", "")
        if name == "enumerate" and source.args:
            return _gives_tuples(source.args[0])
        if name == "super" or isinstance(getattr(source.func, "value", None), ast.Call):
            return getattr(source.func, "attr", "") in GIVE_TUPLES
        return name in GIVE_TUPLES
    return False


def _widest(target: ast.expr) -> int:
    """How many names or tuples stand side by side in it at most."""
    tuples = [
        node for node in ast.walk(target) if isinstance(node, ast.Tuple | ast.List)
    ]
    return max((len(node.elts) for node in tuples), default=1)


def _unpacked(target: ast.expr) -> int:
    """How many names a target binds by position."""
    if isinstance(target, ast.Tuple | ast.List):
        return sum(_unpacked(element) for element in target.elts)
    return 1


def _holds(node: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> int:
    return sum(
        isinstance(inner, kinds) for inner in ast.walk(node) if inner is not node
    )


def complaints(tree: ast.AST, *, has_records: bool = True) -> Iterator[tuple[int, str]]:
    """Line and complaint of each place; without `has_records` tuples by position are none.

    A test's cases stand as tuples right above the loop that unpacks them.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Starred) and isinstance(
            node.value, ast.Tuple | ast.List
        ):
            yield node.lineno, "a star before a literal: write its elements themselves"
        if isinstance(node, ast.IfExp) and _holds(node, ast.IfExp):
            yield (
                node.lineno,
                "a conditional expression in another: write if, or return early",
            )
        if isinstance(node, COMPREHENSIONS) and _holds(node, COMPREHENSIONS) > 1:
            yield (
                node.lineno,
                "more than one comprehension in a comprehension: write a loop, or name the inner",
            )
        targets, source = _targets(node)
        for target in targets:
            is_wide = _widest(target) > MOST_UNPACKED or _unpacked(target) > MOST_IN_ALL
            if has_records and is_wide and not _gives_tuples(source):
                yield (
                    target.lineno,
                    f"{_unpacked(target)} names by position: use a dataclass or a NamedTuple",
                )


def _bound_names(tree: ast.AST) -> Iterator[str]:
    """What a file binds or names, wherever."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name)
                | ast.arg(arg=name)
                | ast.alias(name=name, asname=None)
            ):
                yield name
            case ast.alias(asname=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def renamed_modules(tree: ast.AST, root: Path) -> Iterator[tuple[int, str]]:
    """Line and complaint of each module of ours that is called otherwise for no reason."""
    names = set(_bound_names(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        folder = root / node.module.replace(".", "/")
        for alias in node.names:
            is_module = (folder / f"{alias.name}.py").exists() or (
                folder / alias.name / "__init__.py"
            ).exists()
            if alias.asname and is_module and alias.name not in names:
                yield (
                    node.lineno,
                    f"{alias.name} is renamed to {alias.asname}: import it by its own name",
                )


def prepositions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and complaint of each function that a preposition names, but for constructors."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        is_constructor = any(
            isinstance(decorator, ast.Name) and decorator.id == "classmethod"
            for decorator in node.decorator_list
        )
        first_word = node.name.strip("_").split("_")[0]
        is_known = is_constructor or node.name in LANDED_NAMES
        if first_word in PREPOSITIONS and not is_known:
            yield (
                node.lineno,
                f"{node.name} begins with a preposition: say what it does",
            )


def main(paths: list[str]) -> int:
    """Print each complaint; 1 if there is any."""
    root = Path(__file__).resolve().parents[1]
    if not paths:
        listed = subprocess.check_output(
            ["git", "-C", str(root), "ls-files", "*.py"], text=True
        ).split()
        paths = [str(root / path) for path in listed if "/migrations/" not in path]
    failed = 0
    for path in paths:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        is_test = Path(path).resolve().relative_to(root).parts[0] in {
            "tests",
            "benchmarks",
        }
        found = list(complaints(tree, has_records=not is_test))
        if not is_test:
            found += [*renamed_modules(tree, root), *prepositions(tree)]
        for line, complaint in found:
            print(f"{path}:{line}: {complaint}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
