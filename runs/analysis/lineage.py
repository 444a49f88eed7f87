"""Which commits a branch has left behind, as after a forced push."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs.grouping import group_by_key

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
    branches = group_by_key((commit.ref, commit) for commit in commits)
    parents_of = {
        commit.sha: commit.parents
        for commits in branches.values()
        for commit in commits
    }
    return frozenset(
        sha
        for commits in branches.values()
        for sha in _branch_commits(commits, parents_of)
    )


def _branch_commits(
    commits: Sequence[Commit], parents_of: Mapping[Sha, Sequence[Sha]]
) -> list[Sha]:
    parents = {parent for commit in commits for parent in commit.parents}
    # A clock may be wrong, but the newest commit is nobody's parent.
    newest = next(
        (commit for commit in reversed(commits) if commit.sha not in parents),
        commits[-1],
    )
    line = _ancestors(newest.sha, parents_of)
    unknown = {
        sha
        for sha in line
        if not parents_of[sha] or not set(parents_of[sha]) <= parents_of.keys()
    }
    shas = []
    for commit in commits:
        if commit.sha not in line and commit.parents:
            shared = _ancestors(commit.sha, parents_of) & line
            if shared and unknown <= shared:
                shas.append(commit.sha)
    return shas


def _ancestors(sha: Sha, parents_of: Mapping[Sha, Sequence[Sha]]) -> set[Sha]:
    """A commit and its known ancestors."""
    ancestors, waiting = {sha}, [sha]
    while waiting:
        fresh = {
            parent for parent in parents_of[waiting.pop()] if parent in parents_of
        } - ancestors
        ancestors |= fresh
        waiting += fresh
    return ancestors
