"""Changes one operator or constant of a module at a time and runs the tests: what they do not
notice, they do not check. `script/mutants MODULE TEST...` prints the survivors and the kill rate.

The file itself stays as it is: a process that tests a mutant imports it through a loader that
changes the syntax tree (this module is its pytest plugin).
"""

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parents[1]
# The file and the number of the mutant that the process imports.
MUTANT = "BENCHLAB_MUTANT"
SECONDS = 900

SWAPS: dict[type, type] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a module."""

    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.before}  ->  {self.after}"


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """The possible mutations of a node, one at a time."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in SWAPS:
            yield ast.Compare(left, [SWAPS[type(operator)]()], [right])
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(SWAPS[type(operator)](), values)
        case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
            yield ast.BinOp(left, SWAPS[type(operator)](), right)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Break() | ast.Continue():
            yield SWAPS[type(node)]()
        case ast.If(ast.Name() | ast.Call() | ast.Attribute() as test, body, otherwise):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, otherwise)


class _Mutation(ast.NodeTransformer):
    """Make the change with that number, or only count."""

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        self.found: list[Mutant] = []

    def visit(self, node: ast.AST) -> Any:
        for other in changed(node):
            if self.number == len(self.found):
                self.found.append(Mutant(0, "", ""))
                return ast.copy_location(other, node)
            before, after = (_shown(each) for each in (node, other))
            self.found.append(Mutant(getattr(node, "lineno", 0), before, after))
        return super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Neither do those of arguments; and decorators are no logic."""
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.body = [self.visit(each) for each in node.body]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Without its decorators."""
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        """An annotation does nothing."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def _shown(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).split("\n")[0]


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module."""
    counting = _Mutation()
    counting.visit(ast.parse(source))
    return counting.found


def compiled(source: str, number: int, path: str) -> CodeType:
    """The module with that change."""
    tree = _Mutation(number).visit(ast.parse(source))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, number: int) -> None:
        super().__init__(fullname, path)
        self.number = number

    def get_code(self, fullname: str) -> CodeType:
        return compiled(Path(self.path).read_text(), self.number, self.path)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        self.name = ".".join(path.relative_to(ROOT).with_suffix("").parts)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        loader = _Loader(fullname, str(self.path), self.number)
        return importlib.machinery.ModuleSpec(fullname, loader, origin=str(self.path))


def survives(path: Path, number: int, tests: Sequence[str]) -> bool:
    """Whether the tests pass with that mutant."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.mutants", "-x", "-q", *tests],
        cwd=ROOT,
        # As a worker of pytest-xdist it shares the servers of this process.
        env=os.environ | {MUTANT: f"{path}:{number}", "PYTEST_XDIST_WORKER": f"mutant{number}"},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode == 0


def main() -> int:
    """Print the survivors and the kill rate; fails where it is below `--least` percent."""
    parser = argparse.ArgumentParser(prog="script/mutants", description=__doc__)
    parser.add_argument("module", type=Path, help="a file, such as runs/tools/pgbench/verdict.py")
    parser.add_argument("tests", nargs="+", help="what goes to pytest")
    parser.add_argument("--least", type=int, default=90, help="percent that tests must kill")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", help="numbers of mutants, by commas")
    options = parser.parse_args()
    importlib.import_module("tests.real_services")
    path = options.module.resolve()
    found = mutants(path.read_text())
    chosen = list(map(int, options.only.split(","))) if options.only else list(range(len(found)))
    if survives(path, len(found), options.tests) is False:
        print("The tests fail without any change.")
        return 2
    with ThreadPoolExecutor(options.processes) as pool:
        alive = list(pool.map(lambda number: survives(path, number, options.tests), chosen))
    survivors = [number for number, lives in zip(chosen, alive, strict=True) if lives]
    for number in survivors:
        print(f"{number}: {options.module} {found[number]}")
    killed = len(chosen) - len(survivors)
    print(f"{options.module}: {killed} of {len(chosen)} killed, {100 * killed / len(chosen):.0f} %")
    return 0 if 100 * killed >= options.least * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
if MUTANT in os.environ:
    _file, _, _number = os.environ[MUTANT].rpartition(":")
    sys.meta_path.insert(0, _Finder(Path(_file), int(_number)))
