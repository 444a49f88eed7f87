"""Which commits a branch has left behind, as after a forced push."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs.grouping import by_key

Sha = str


@dataclass(frozen=True)
class Commit:
    """A measured commit, its branch, and its parents (empty where they are not known)."""

    sha: Sha
    ref: Hashable
    parents: Sequence[Sha]


def left_behind(commits: Iterable[Commit]) -> frozenset[Sha]:
    """The commits that are no ancestors of their branch's newest one; `commits` oldest first.

    Told only where the parents say so: the commit and the newest one come from a common commit, and
    on the way from there to the newest one no parent is unknown that might lead to it.
    """
    branches = by_key((commit.ref, commit) for commit in commits)
    known = {commit.sha: commit.parents for own in branches.values() for commit in own}
    return frozenset(sha for own in branches.values() for sha in _of_branch(own, known))


def _of_branch(commits: Sequence[Commit], known: Mapping[Sha, Sequence[Sha]]) -> list[Sha]:
    parents = {parent for commit in commits for parent in commit.parents}
    # A clock may be wrong, but the newest commit is nobody's parent.
    newest = next((each for each in reversed(commits) if each.sha not in parents), commits[-1])
    line = _ancestors(newest.sha, known)
    unknown = {sha for sha in line if not known[sha] or not set(known[sha]) <= known.keys()}
    found = []
    for commit in commits:
        if commit.sha not in line and commit.parents:
            shared = _ancestors(commit.sha, known) & line
            if shared and unknown <= shared:
                found.append(commit.sha)
    return found


def _ancestors(sha: Sha, known: Mapping[Sha, Sequence[Sha]]) -> set[Sha]:
    """A commit and its known ancestors."""
    found, waiting = {sha}, [sha]
    while waiting:
        fresh = {each for each in known[waiting.pop()] if each in known} - found
        found |= fresh
        waiting += fresh
    return found
