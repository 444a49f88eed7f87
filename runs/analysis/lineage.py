"""Which commits a branch has left behind, as after a forced push; and which one a sha means."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runs.grouping import group_by_key

Sha = str


@dataclass(frozen=True)
class Commit:
    """A measured commit, its branch, and its parents (empty where they are not known)."""

    sha: Sha
    ref: Hashable
    parents: Sequence[Sha]


class Spellings:
    """Known commits, which others may name by more or fewer digits."""

    FEWEST_DIGITS = 7

    def __init__(self, shas: Iterable[Sha]) -> None:
        self._shas = set(shas)
        self._in_order = sorted(self._shas)

    def known_sha(self, sha: Sha) -> Sha:
        """That of the commit that is meant; the sha as it is where none or several may be."""
        if sha in self._shas or len(sha) < self.FEWEST_DIGITS:
            return sha
        place = bisect_left(self._in_order, sha)
        candidates = [
            longer
            for longer in self._in_order[place : place + 2]
            if longer.startswith(sha)
        ]
        beginnings = (sha[:count] for count in range(self.FEWEST_DIGITS, len(sha)))
        candidates += [shorter for shorter in beginnings if shorter in self._shas]
        return candidates[0] if len(candidates) == 1 else sha

    def known_shas(self, shas: Iterable[Sha]) -> list[Sha]:
        """The same of several."""
        return [self.known_sha(sha) for sha in shas]


def left_behind(commits: Iterable[Commit]) -> frozenset[Sha]:
    """The commits that are no ancestors of their branch's newest one; `commits` oldest first.

    Told only where the parents say so: the commit and the newest one come from a common commit, and
    on the way from there to the newest one no parent is unknown that might lead to it.
    """
    commits = list(commits)
    spellings = Spellings(commit.sha for commit in commits)
    branches = group_by_key(
        (commit.ref, replace(commit, parents=spellings.known_shas(commit.parents)))
        for commit in commits
    )
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
