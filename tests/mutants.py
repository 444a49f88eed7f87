"""Changes one operator or constant of a module at a time, or takes a guard away, and runs the
tests: what they do not notice, they do not check. `script/mutants MODULE TEST...` prints the
survivors and the kill rate.

The file itself stays as it is. A process starts pytest, and when pytest imports the module, forks
once for each mutant: the child gets a changed syntax tree, and goes on to collect and test. So what
is imported before the module is imported once. Name quick tests, those of the module itself.
"""

import argparse
import ast
import atexit
import importlib
import importlib.abc
import importlib.machinery
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# What the test of a mutant may take; it counts as killed if it takes longer.
SECONDS = 120

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


def without_guard(node: ast.AST) -> Iterator[ast.AST]:
    """What services that write rest on, taken away: a refusal, a second write, a compared state."""
    match node:
        case ast.If(body=[ast.Raise() | ast.Return() | ast.Continue()], orelse=[]):
            yield ast.Pass()
        case ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Call(ast.Attribute(attr="filter" | "exclude"), arguments, keywords):
            conditions = len(arguments) + len(keywords)
            for keyword in keywords if conditions > 1 else ():
                others = [other for other in keywords if other is not keyword]
                yield ast.Call(node.func, arguments, others)


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """The possible mutations of a node, one at a time."""
    yield from without_guard(node)
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

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Without `strict` of zip, which changes nothing where both are of one length."""
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            node.args = [self.visit(each) for each in node.args]
            return node
        return self.generic_visit(node)

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
    """Forks when the module is imported, and goes on in each child with another mutant.

    The first is no change: if the tests fail with that, they say nothing about the others.
    """

    def __init__(
        self, fullname: str, path: str, numbers: Sequence[int], results: Path
    ) -> None:
        super().__init__(fullname, path)
        self.numbers, self.results = numbers, results

    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text()
        for number in self.numbers:
            child = os.fork()
            if child == 0:
                # Also ends a child that does not come as far as pytest's own limit.
                signal.alarm(SECONDS)
                return compiled(source, number, self.path)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with self.results.open("a") as results:
                results.write(f"{number} {status}\n")
            if number == self.numbers[0] and status:
                break
        # pytest was started for the children.
        atexit._run_exitfuncs()
        os._exit(0)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, path: Path, numbers: Sequence[int], results: Path) -> None:
        self.path, self.numbers, self.results = path, numbers, results
        self.name = ".".join(path.relative_to(ROOT).with_suffix("").parts)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        loader = _Loader(fullname, str(self.path), self.numbers, self.results)
        return importlib.machinery.ModuleSpec(fullname, loader, origin=str(self.path))


def serve(
    path: Path, numbers: Sequence[int], results: Path, tests: Sequence[str]
) -> None:
    """Test these mutants one after the other; append each number and pytest's status to results."""
    sys.meta_path.insert(0, _Finder(path, numbers, results))
    status = pytest.main(["-x", "-q", "--timeout", str(SECONDS // 2), *tests])
    # A child: what was started before the fork is not its to stop.
    os._exit(int(status))


def statuses(
    path: Path, numbers: Sequence[int], tests: Sequence[str], processes: int
) -> dict[int, int]:
    """Pytest's status for each mutant, and for the module without change (the number after all)."""
    unchanged = len(mutants(path.read_text()))
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.touch()
        # As workers of pytest-xdist they share the servers of this process.
        serving = [
            sys.executable,
            "-m",
            "tests.mutants",
            path,
            *tests,
            "--serve",
            results,
            "--only",
        ]
        workers = [
            subprocess.Popen(
                [*serving, ",".join(map(str, [unchanged, *numbers[place::processes]]))],
                cwd=ROOT,
                env=os.environ | {"PYTEST_XDIST_WORKER": f"mutant{place}"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for place in range(min(processes, len(numbers)))
        ]
        for worker in workers:
            worker.wait()
        rows = [map(int, line.split()) for line in results.read_text().splitlines()]
    return dict(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/mutants", description=__doc__)
    parser.add_argument(
        "module", type=Path, help="a file, such as runs/tools/pgbench/parser.py"
    )
    parser.add_argument("tests", nargs="+", help="what goes to pytest")
    parser.add_argument(
        "--least", type=int, default=90, help="percent that tests must kill"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", help="numbers of mutants, by commas")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Print the survivors and the kill rate; fails where it is below `--least` percent."""
    options = _options()
    path = options.module.resolve()
    found = mutants(path.read_text())
    chosen = (
        list(map(int, options.only.split(",")))
        if options.only
        else list(range(len(found)))
    )
    if options.serve:
        serve(path, chosen, options.serve, options.tests)
    importlib.import_module("tests.real_services")
    ended = statuses(path, chosen, options.tests, options.processes)
    if ended.get(len(found)) != 0:
        print("The tests fail without any change, or do not import the module.")
        return 2
    survivors = [number for number in chosen if ended[number] == 0]
    for number in survivors:
        print(f"{number}: {options.module} {found[number]}")
    killed = len(chosen) - len(survivors)
    print(
        f"{options.module}: {killed} of {len(chosen)} killed, {100 * killed / len(chosen):.0f} %"
    )
    return 0 if 100 * killed >= options.least * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
