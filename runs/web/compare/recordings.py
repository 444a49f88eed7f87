"""What runs of their own recorded of two sides, as tables of the page that explains them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.analysis.why.functions import Compared
from runs.selectors.why.words import percent
from runs.services.why import words
from runs.services.why.explanations import Explanation
from runs.services.why.recorded import ADDRESS, Call, Instructions, Stack

MUCH_UNNAMED = 0.1


@dataclass(frozen=True)
class Table:
    """A row is its head, which is code, and its figures. `note` stands below, with a link."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    note: str = ""
    link: str = ""

    @property
    def labelled(self) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
        """The rows, each figure with the head of its column."""
        for name, values in self.rows:
            yield name, list(zip(self.columns[1:], values, strict=True))


def tables(found: Explanation) -> Iterator[Table]:
    """Those for which there is something."""
    a, b = found.labels
    recorded = found.recorded
    for title, counted in (
        (_("Instructions per transaction, pages in memory"), recorded.instructions),
        (_("Instructions per transaction that reads its pages"), recorded.reading),
    ):
        if counted is not None:
            yield Table(
                title,
                (_("Function"), a, b, _("Difference")),
                list(_instructions(counted)),
                _("Counted by callgrind in single-user mode: work, not time."),
            )
    if recorded.profile is not None:
        yield _functions(found, recorded.profile)
    if recorded.calls:
        figures = (_("share of the time"), _("per transaction"), _("failed"))
        yield Table(
            _("System calls"),
            (_("Call"), *(f"{side}: {figure}" for figure in figures for side in found.labels)),
            [(each.name, list(_of_call(each))) for each in recorded.calls],
            _("Counted by strace in all processes of the server, which slows them down."),
        )
    for title, stacks, note in (
        (
            _("Where sessions leave the processor"),
            recorded.sleeps,
            _("By perf, where the kernel may be seen: how often, not for how long."),
        ),
        (
            _("Who waits for semaphores, and who wakes others"),
            recorded.stacks,
            _semaphores(recorded.stacks, found.labels),
        ),
    ):
        if stacks:
            yield Table(
                title,
                (_("Functions, the innermost first"), _("Side"), _("Call"), _("Share")),
                [
                    (each.functions, (found.labels[each.is_of_b], each.call, percent(each.share)))
                    for each in stacks
                ],
                note,
            )


def _instructions(counted: Instructions) -> Iterator[tuple[str, Sequence[str]]]:
    rows = {_("all"): (counted.a, counted.b), **counted.functions}
    for name, (a, b) in rows.items():
        shown = _("functions without a name") if name == ADDRESS else name
        yield shown, (str(a), str(b), f"{b - a:+,d}")


def _of_call(each: Call) -> Iterator[str]:
    for place, shown in enumerate((percent, "{:.3g}".format, percent)):
        yield from (shown(side[place]) for side in (each.a, each.b))


def _functions(found: Explanation, compared: Compared) -> Table:
    a, b = found.labels
    address = ""
    if found.recorded.profiles is not None:
        before, after = found.recorded.profiles
        address = f"{reverse('run-profile', args=[after])}?{urlencode({'against': before})}"
    return Table(
        _("Processor time per transaction, by function"),
        (_("Function"), a, b, _("Difference"), _("interval (95 %)")),
        [
            (
                each.name,
                (
                    words.amount(each.a),
                    words.amount(each.b),
                    words.signed(each.difference.value),
                    words.interval(each.difference),
                ),
            )
            for each in compared.functions
        ],
        " ".join(_of_samples(compared)),
        address,
    )


def _of_samples(compared: Compared) -> Iterator[str]:
    a, b = compared.samples
    yield _("%(a)d and %(b)d samples by perf.") % {"a": a, "b": b}
    if not compared.functions:
        yield _("Of no function it is sure that it differs.")
    if min(a, b) < compared.enough:
        yield _("A difference of 1 %% takes %(number)d samples a side.") % {
            "number": compared.enough
        }
    for name, share in compared.unnamed.items():
        if share > MUCH_UNNAMED:
            yield _(
                "%(share)s of the samples are in %(file)s, whose functions have no names: install "
                "its symbols (postgresql-NN-dbgsym on Debian, postgresqlNN-debuginfo on RHEL)."
            ) % {"share": percent(share), "file": name.strip("[]")}


# Which semaphores a build has is chosen when it is configured: POSIX on Linux since PostgreSQL 10.
SYSTEM_V = frozenset({"semop", "semtimedop"})


def _semaphores(stacks: Sequence[Stack], labels: Sequence[str]) -> str:
    """That the builds have other semaphores, which no setting changes."""
    of_side = [
        any(each.call in SYSTEM_V for each in stacks if each.is_of_b == side) for side in (0, 1)
    ]
    if of_side[0] == of_side[1] or not all(any(e.is_of_b == s for e in stacks) for s in (0, 1)):
        return ""
    system_v, posix = labels[of_side[1]], labels[of_side[0]]
    return _(
        "%(system_v)s was built with semaphores of System V (semop), %(posix)s with those of POSIX "
        "(futex): no setting puts that back."
    ) % {"system_v": system_v, "posix": posix}
