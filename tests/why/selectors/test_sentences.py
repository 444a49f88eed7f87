"""Every sentence that an explanation can say, with the data under which it is true.

`CASES` is the table. A text of the modules below that no case says fails the last test: whoever
writes a new sentence writes here of which data it is true.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from django.utils import translation

from runs.analysis.inference import Inference
from runs.analysis.why import parts, proof
from runs.analysis.why.counters import Moved
from runs.analysis.why.parts import Estimate
from runs.analysis.why.plan_reads import PlanRead
from runs.analysis.why.proof import AGAIN, ALL, GIVEN, A, B
from runs.analysis.why.suspects import Suspect
from runs.analysis.why.waits import Slept
from runs.campaigns.selectors import ablation_words
from runs.models import Ablation, Campaign, Cell
from runs.why.selectors import answers, words
from runs.why.selectors.ablations import Answers
from runs.why.selectors.answers import WhyAnswer
from runs.why.selectors.explanation import Explanation, Length
from runs.why.selectors.recordings import Instructions, Recorded
from tests import texts
from tests.unit.analysis.why.test_proof import arms

MODULES = (words, ablation_words, answers)
NOTHING = Explanation(
    a=Cell(),
    b=Cell(),
    labels=("old", "new"),
    obstacle="",
    difference=None,
    in_turn=None,
    suspects=(),
    tried=(),
    kinds=frozenset(words.RECORDED_KINDS),
    proposed=(),
    plans=(PlanRead(), PlanRead()),
    plans_missing="",
    moved=(),
    ablation=None,
    answers=None,
    length=None,
    recording=None,
    recorded=Recorded(),
)


def run(seconds, *, server=0.5, queue=0.0, number=1):
    """The parts of a run: what is not on a processor or in its queue is blocked."""
    taken = seconds * (server + queue)
    return parts.Parts(
        seconds=seconds,
        cpu=seconds * server,
        server=seconds * server,
        server_queue=seconds * queue,
        client=0.0,
        client_queue=0.0,
        blocked=seconds - taken,
        errors=dict.fromkeys(parts.PARTS, 0.0),
        round=number,
    )


def difference(a, b, *, scatter=0.01, rounds=4, **of_both):
    """Of sides whose rounds scatter by this share, in opposite ways."""
    sides = [
        [
            run(
                seconds * (1 + sign * scatter * (-1) ** number),
                number=number,
                **of_both,
            )
            for number in range(rounds)
        ]
        for seconds, sign in ((a, 1), (b, -1))
    ]
    return parts.compare(*sides)


SURE = difference(0.001, 0.002)
SETTING = Suspect("setting", "jit", "off", "on", put_back={"jit": "off"})
SETTING_TOO = replace(SETTING, name="fsync", put_back={"fsync": "off"})


def tried(truth, *suspects, rounds=12, spread=0.01, ended=True, cpu=None, lost=()):
    """An explanation with an ablation whose arms have these logs."""
    names = [suspect.key for suspect in suspects]
    measured = arms(truth, rounds, spread=spread)
    for name, number in lost:
        measured[name].pop(number, None)
    of_cpu = (
        None if cpu is None else proof.prove(arms(cpu, rounds, spread=spread), names)
    )
    kept = [suspect.to_json() for suspect in suspects]
    ablation = Ablation(campaign=Campaign(title="Why"), suspects=kept)
    of_time = proof.prove(measured, names, has_ended=ended)
    lacking = proof.lacking(measured, names) if ended else {}
    return replace(
        NOTHING,
        difference=SURE,
        suspects=suspects,
        tried=suspects,
        ablation=ablation,
        answers=Answers(of_time, of_cpu, ended, lacking),
    )


TRUTH = {A: 0.0, B: 1.0, AGAIN: 1.0, "jit": 1.0, "fsync": 1.0, ALL: 1.0}


def with_suspect(**fields):
    return replace(NOTHING, difference=SURE, suspects=(replace(SETTING, **fields),))


@dataclass(frozen=True)
class Case:
    """Under which condition a sentence is true, such data, and the sentence."""

    condition: str
    explanation: Callable[[], Explanation]
    says: str


UNSURE = difference(0.001, 0.00101, scatter=0.3)


def in_turn(verdict, low, high, of_runs=None):
    """What a campaign of slices has decided of the time, though its runs are not sure."""
    inference = Inference(verdict, ratio=(low * high) ** 0.5, low=low, high=high)
    return replace(NOTHING, difference=of_runs or UNSURE, in_turn=inference)


MORE = "new needs 1 ms more per transaction than old: 500 µs more server on a processor, 500 µs"
CASES = [
    Case(
        "the interval of the time excludes 0",
        lambda: replace(NOTHING, difference=SURE),
        MORE,
    ),
    Case(
        "the same, and it is less",
        lambda: replace(NOTHING, difference=difference(0.002, 0.001)),
        "new needs 1 ms less per transaction than old",
    ),
    Case(
        "the interval includes 0",
        lambda: replace(NOTHING, difference=difference(0.001, 0.00101, scatter=0.3)),
        "Undecided: new needs -",
    ),
    Case(
        "the interval of the slices excludes 1, and that of the runs does not",
        lambda: in_turn("slower", 1.1, 1.2),
        "By their slices new needs 10.0 to 20.0 % more time per transaction than old.",
    ),
    Case(
        "the same, and it is less",
        lambda: in_turn("faster", 0.8, 0.9),
        "By their slices new needs 10.0 to 20.0 % less time per transaction than old.",
    ),
    Case(
        "the slices lie within the minimum effect, though the runs lie apart by chance",
        lambda: in_turn("same", 0.99, 1.01, SURE),
        "By their slices the time per transaction is the same: new to old -1.0 to +1.0 %.",
    ),
    Case(
        "the interval of the slices includes 1, as the campaign says",
        lambda: in_turn("undecided", 0.9, 1.2, SURE),
        "Undecided by their slices: new to old -10.0 to +20.0 % time.",
    ),
    Case(
        "slices and runs agree: the amount and its parts are said",
        lambda: in_turn("slower", 1.9, 2.1, SURE),
        MORE,
    ),
    Case(
        "the same of processor time",
        lambda: replace(NOTHING, difference=difference(0.001, 0.00101, scatter=0.3)),
        "Undecided of processor time: -",
    ),
    Case(
        "no part moves, though the whole does",
        lambda: replace(NOTHING, difference=replace(SURE, by_part={})),
        "new needs 1 ms more per transaction than old.",
    ),
    Case(
        "most of the difference is blocked",
        lambda: replace(NOTHING, difference=difference(0.001, 0.002, server=0.1)),
        "900 µs of 1 ms are waiting.",
    ),
    Case(
        "the same, and a wait event lies apart",
        lambda: replace(
            NOTHING,
            difference=difference(0.001, 0.002, server=0.1),
            recorded=Recorded(
                waits=[
                    Slept("Lock", "tuple", 0.0, 0.001, Estimate.within(0.001, 0.0001))
                ]
            ),
        ),
        "900 µs of 1 ms are waiting, most of it for Lock: tuple.",
    ),
    Case(
        "queues take more than a tenth: what moved comes first, the doubt after it",
        lambda: replace(NOTHING, difference=difference(0.001, 0.002, queue=0.2)),
        "Waiting for a processor took 20 % of the time of old and 20 % of that of new: the "
        "machine was not this experiment's alone.",
    ),
    Case(
        "the queue of one side is known, and of the other in no run",
        lambda: replace(NOTHING, difference=_of_queues(0.2, None)),
        "Waiting for a processor took 20 % of the time of old, and of the other it is not known: "
        "the machine was not this experiment's alone.",
    ),
    Case(
        "the queue of the server is known in no run, and that of the client takes a tenth",
        lambda: replace(
            NOTHING, difference=_of_queues(None, None, client_queue=0.0002)
        ),
        "The load waited for a processor: the machine was not this experiment's alone.",
    ),
    Case(
        "the same: processor time is the second answer",
        lambda: replace(NOTHING, difference=difference(0.001, 0.002, queue=0.2)),
        "new needs 500 µs more processor time per transaction than old.",
    ),
    Case(
        "the same, and it is less",
        lambda: replace(NOTHING, difference=difference(0.002, 0.001, queue=0.2)),
        "new needs 500 µs less processor time per transaction than old.",
    ),
    Case(
        "only without the queue does the time differ",
        lambda: replace(NOTHING, difference=_queued(0.001)),
        "Without the time in the queue new needs 1 ms more per transaction than old",
    ),
    Case(
        "the same, and it is less",
        lambda: replace(NOTHING, difference=_queued(-0.001)),
        "Without the time in the queue new needs 1 ms less per transaction than old",
    ),
    Case(
        "a year lies between the runs of both sides",
        lambda: replace(NOTHING, difference=SURE, days_apart=365),
        "365 days lie between their runs, and what changed on the machine meanwhile is in the "
        "difference; an ablation measures both again.",
    ),
    Case(
        "the same of two days",
        lambda: replace(NOTHING, difference=SURE, days_apart=2),
        "2 days lie between their runs",
    ),
    Case(
        "a side has one run",
        lambda: replace(NOTHING, difference=difference(0.001, 0.002, rounds=1)),
        "That is of one run a side, and may be chance.",
    ),
    Case(
        "both plans are known and differ",
        lambda: replace(
            with_suspect(kind="plan", name="", put_back={}),
            plans=(
                PlanRead(1, "orders", "orders_customer"),
                PlanRead(100_000, "orders"),
            ),
        ),
        "The plans differ: new reads an estimated 100,000 rows of orders, where old reads an "
        "estimated 1 row of orders by orders_customer.",
    ),
    Case(
        "a plan reads no table",
        lambda: replace(
            with_suspect(kind="plan", name="", put_back={}),
            plans=(PlanRead(), PlanRead(10, "orders")),
        ),
        "where old reads no table",
    ),
    Case(
        "the plans differ in something else than what they read",
        lambda: replace(
            with_suspect(kind="plan", name="", put_back={}),
            plans=(PlanRead(10, "orders"), PlanRead(10, "orders")),
        ),
        "The plans differ, and each reads an estimated 10 rows of orders.",
    ),
    *(
        Case(
            f"no plan is known: {code or 'nothing recorded'}",
            lambda code=code: replace(
                NOTHING, difference=SURE, plans=None, plans_missing=code
            ),
            f"The plans are not known: {text}.",
        )
        for code, text in words.PLANS_MISSING.items()
    ),
    *(
        Case(
            f"the obstacle {code}",
            lambda code=code: replace(NOTHING, obstacle=code, silent=("new",)),
            str(text) % {"a": "old", "b": "new", "silent": "new"},
        )
        for code, text in words.OBSTACLES.items()
    ),
    Case(
        "instructions were counted",
        lambda: replace(
            NOTHING,
            recorded=Recorded(
                Instructions(1000, 900, {}), Instructions(1000, 1100, {})
            ),
        ),
        "new executes 10.0 % fewer instructions per transaction. If it has to read its pages: "
        "+10.0 %.",
    ),
    Case(
        "the same, and more",
        lambda: replace(NOTHING, recorded=Recorded(Instructions(1000, 1100, {}))),
        "new executes 10.0 % more instructions per transaction.",
    ),
    Case(
        "something that differs can be put back",
        with_suspect,
        "1 difference can be put back.",
    ),
    Case(
        "nothing can: what stays has no name",
        lambda: replace(NOTHING, difference=SURE),
        "Not explained: no difference was found that can be put back. Looked at: Setting",
    ),
    Case(
        "a kind that a side did not record was not looked at",
        lambda: replace(NOTHING, difference=SURE, kinds=frozenset({"setting"})),
        "Looked at: Setting, Query plan; not looked at: Table, Index,",
    ),
    Case(
        "compilers differ, and only then the build is named",
        lambda: with_suspect(
            kind="build", name="compiler", a="4.4", b="7.5", put_back={}
        ),
        "The build differs (compiler 4.4, 7.5) and was not tried.",
    ),
    # Ablations.
    Case(
        "an arm is proven",
        lambda: tried({**TRUTH, "jit": 0.1, ALL: 0.1}, SETTING, SETTING_TOO),
        "Time: Putting jit back explains 9",
    ),
    Case(
        "all of it, measured too",
        lambda: tried({**TRUTH, "jit": 0.1, ALL: 0.1}, SETTING, SETTING_TOO),
        "All that was tried explains 9",
    ),
    Case(
        "another arm's interval ends below half of the difference",
        lambda: tried({**TRUTH, "jit": 0.1, ALL: 0.1}, SETTING, SETTING_TOO),
        "Alone, fsync has no effect above 3 %.",
    ),
    Case(
        "all is proven and none alone",
        lambda: tried({**TRUTH, ALL: 0.0}, SETTING, SETTING_TOO),
        "Put back together, jit, fsync explain 100 %",
    ),
    Case(
        "the same: both end below half of the difference",
        lambda: tried({**TRUTH, ALL: 0.0}, SETTING, SETTING_TOO),
        "Alone, none of jit, fsync has an effect above 3 %. So each of the two suffices to make "
        "the difference.",
    ),
    Case(
        "A with one of B has the difference",
        lambda: tried(
            {**TRUTH, ALL: 0.0, f"{GIVEN}jit": 1.0, f"{GIVEN}fsync": 1.0},
            SETTING,
            SETTING_TOO,
        ),
        "A with only jit of B has 100 %",
    ),
    Case(
        "each alone takes it away",
        lambda: tried(
            {**TRUTH, "jit": 0.0, "fsync": 0.0, ALL: 0.0}, SETTING, SETTING_TOO
        ),
        "Putting back any one of jit, fsync takes most of it away: it needs them all.",
    ),
    Case(
        "the same: A with one of them has no difference",
        lambda: tried(
            {
                **TRUTH,
                "jit": 0.0,
                "fsync": 0.0,
                ALL: 0.0,
                f"{GIVEN}jit": 0.0,
                f"{GIVEN}fsync": 0.0,
            },
            SETTING,
            SETTING_TOO,
        ),
        "A with only one of jit, fsync differs by at most 3 %.",
    ),
    Case(
        "of those that A was given only one was measured, and does nothing",
        lambda: tried(
            {**TRUTH, "jit": 0.0, ALL: 0.0, f"{GIVEN}fsync": 0.0},
            SETTING,
            SETTING_TOO,
        ),
        "A with only fsync of B differs by at most 3 %.",
    ),
    Case(
        "shares do not add up to that of all",
        lambda: tried(
            {**TRUTH, "jit": 0.7, "fsync": 0.7, ALL: 0.0}, SETTING, SETTING_TOO
        ),
        "Their single shares do not add up to that of all together: they interact.",
    ),
    Case(
        "an arm's interval reaches beyond half of the difference",
        lambda: tried({A: 0.0, B: 0.5, AGAIN: 0.5, "jit": 0.48}, SETTING, spread=0.3),
        "Of jit alone it is undecided: ",
    ),
    Case(
        "an arm lies beyond B",
        lambda: tried({**TRUTH, "jit": 1.5}, SETTING, SETTING_TOO),
        "Putting jit back makes the difference larger: -",
    ),
    Case(
        "no arm is proven, nor all",
        lambda: tried(TRUTH, SETTING, SETTING_TOO),
        "Together, all that was tried explains ",
    ),
    Case(
        "the same, at the end: what stays has no name",
        lambda: tried(TRUTH, SETTING, SETTING_TOO),
        "Not explained by what was tried. Looked at: ",
    ),
    Case(
        "B again lies apart from B",
        lambda: tried({**TRUTH, AGAIN: 1.5}, SETTING),
        "No verdict: B again to B was 1.6",
    ),
    Case(
        "the interval of B to A includes 1",
        lambda: tried({A: 0.0, B: 0.0, AGAIN: 0.0, "jit": 0.0}, SETTING, spread=0.1),
        "Undecided whether the difference is there again: B to A was ",
    ),
    Case(
        "six rounds have ended, and more are queued",
        lambda: tried(TRUTH, SETTING, rounds=6, ended=False),
        "Not decided after 6 rounds.",
    ),
    Case(
        "the campaign has ended, and A has two values",
        lambda: tried(TRUTH, SETTING, rounds=2),
        "Time: no answer, since an arm has too few runs that count.",
    ),
    Case(
        "no suspect has enough values",
        lambda: _without_suspects(1),
        "Time: No suspect has enough runs for an answer.",
    ),
    Case(
        "time and processor time are two answers",
        lambda: tried(
            {**TRUTH, "jit": 0.1}, SETTING, cpu={A: 0.0, B: 0.5, AGAIN: 0.5, "jit": 0.5}
        ),
        "Processor time: Alone, jit has no effect above 3 %.",
    ),
    *(
        Case(
            f"only the ablation decides: processor time {is_of_cpu}, less {is_less}",
            lambda is_of_cpu=is_of_cpu, is_less=is_less: _decided(is_of_cpu, is_less),
            str(text).partition("%(b)s")[0] % {"rounds": 12},
        )
        for (is_of_cpu, is_less), text in words.OF_ROUNDS.items()
    ),
    Case(
        "the same, and it is more than five times as much",
        lambda: _decided(False, False, log=2.0),
        "In the 12 rounds of the ablation new needs 7.32 to 7.41 times the time per transaction of "
        "old.",
    ),
    Case(
        "the same of processor time",
        lambda: _decided(True, False, log=2.0),
        "needs 7.32 to 7.41 times the processor time per transaction of old.",
    ),
]


def _queued(amount):
    """The queue scatters more than the time without it, which differs by this amount."""
    first, second = 0.002, 0.002 + amount
    sides = [
        [
            replace(
                run(seconds, server=0.5),
                seconds=seconds + queue,
                server_queue=queue,
                round=number,
            )
            for number, queue in enumerate(queues)
        ]
        for seconds, queues in (
            (first, (0.001, 0.009, 0.002, 0.008)),
            (second, (0.008, 0.001, 0.009, 0.002)),
        )
    ]
    return parts.compare(*sides)


def _of_queues(*queues, **of_both):
    """Of sides that wait for a processor for this share of their time; None: nobody knows it."""
    sides = [
        [
            replace(
                run(0.001, queue=queue or 0.0, number=number),
                server_queue=None if queue is None else 0.001 * queue,
                **of_both,
            )
            for number in range(4)
        ]
        for queue in queues
    ]
    return parts.compare(*sides)


def _decided(is_of_cpu, is_less, log=0.5):
    of_b = -log if is_less else log
    truth = {A: 0.0, B: of_b, AGAIN: of_b, "jit": 0.0}
    found = tried(truth, SETTING, cpu=truth)
    of_answers = replace(found.answers, time=None) if is_of_cpu else found.answers
    undecided = difference(0.001, 0.00101, scatter=0.3)
    return replace(found, difference=undecided, answers=of_answers)


def _without_suspects(seed):
    found = tried(TRUTH, SETTING)
    none = proof.prove(
        arms({A: 0.0, B: 1.0, AGAIN: 1.0}, 12, spread=0.01, seed=seed), []
    )
    return replace(found, answers=replace(found.answers, time=none))


def test_a_set_up_and_what_it_makes_are_not_said_to_be_needed_both():
    setup = Suspect("setup", "init_sql", "a", "b", plan_parts=("setup",))
    truth = {A: 0.0, B: 1.0, AGAIN: 1.0, "jit": 0.0, setup.key: 0.0, ALL: 0.0}
    sentence = answers.answer_explanation(tried(truth, SETTING, setup)).sentence
    assert "Putting jit back explains 100 %" in sentence
    assert "Putting set-up of the data back explains 100 %" in sentence
    assert "needs them all" not in sentence
    assert "interact" not in sentence


def test_a_sentence_names_an_object_in_the_readers_language():
    stale = Suspect("freshness", "orders", "1 day", "1 hour")
    truth = {A: 0.0, B: 1.0, AGAIN: 1.0, stale.key: 0.0}
    said = answers.answer_explanation(tried(truth, stale)).sentence
    assert "Putting state of the statistics orders back explains 10" in said
    with translation.override("ja"):
        said = answers.answer_explanation(tried(truth, stale)).sentence
    assert "統計情報の状態 orders" in said
    assert "freshness" not in said


def test_nothing_is_said_to_be_unexplained_where_the_difference_is_not_found_again():
    sentence = answers.answer_explanation(
        tried({**TRUTH, A: 1.0}, SETTING, spread=0.05)
    ).sentence
    assert "Undecided whether the difference is there again" in sentence
    assert "Not explained" not in sentence
    assert "Looked at" not in sentence


def test_nothing_is_said_to_be_unexplained_of_which_no_run_has_ended():
    sentence = answers.answer_explanation(tried(TRUTH, SETTING, rounds=2)).sentence
    assert "no answer, since an arm has too few runs that count" in sentence
    assert "Not explained" not in sentence


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says[:60])
def test_the_sentence_is_said_of_such_data(case):
    assert case.says in answers.answer_explanation(case.explanation()).sentence


def _without_time():
    """Runs in which others had the machine, so far."""
    found = tried(TRUTH, SETTING, rounds=6, ended=False, cpu=TRUTH)
    return replace(found, answers=replace(found.answers, time=None))


MOVED = tuple(Moved("pg_stat_wal", "", f"wal_{name}", 0.0, 1.0) for name in "abcd")
ROWS = [
    with_suspect(state="acts", evidence=("counters_moved", code), moved=MOVED)
    for code in words.EVIDENCE
]
ROWS += [
    with_suspect(state="not_judged"),
    with_suspect(state="not_judged", unseen=("plans",)),
]
ROWS += [
    with_suspect(state="no_sign", looked=("plans", "lsn.bytes"), unseen=(code,))
    for code in words.UNSEEN
]
ROWS += [with_suspect(state="no_sign", looked=("lsn.bytes",))]
ROWS += [
    with_suspect(kind=kind, put_back={}, plan_parts=(part,))
    for part in words.BACK
    for kind in words.KINDS
]
ROWS += [
    replace(
        NOTHING,
        difference=SURE,
        suspects=(
            replace(SETTING, kind="rows", name="t", put_back={}),
            Suspect("setup", "init_sql", "", "", plan_parts=("setup",)),
        ),
    ),
    with_suspect(put_back={}),
    # A function that the side lacks, and that no record defines.
    with_suspect(kind="trigger", name="t.g", put_back={}, undefined=("g()",)),
    replace(with_suspect(), length=Length(4, (60.0, 120.0))),
]
NOTES = [
    tried(TRUTH, SETTING, rounds=12, lost=[("jit", 3)]),
    tried({**TRUTH, "jit": 0.1, ALL: 0.1}, SETTING, SETTING_TOO, lost=[("jit", 3)]),
    replace(
        tried(TRUTH, SETTING),
        answers=replace(tried(TRUTH, SETTING).answers, lacking={"jit": 1}),
    ),
    replace(
        tried(TRUTH, SETTING),
        answers=Answers(None, None, has_ended=True, unchanged=("jit",)),
    ),
    tried(TRUTH, SETTING, rounds=6, ended=False),
    tried(
        TRUTH,
        replace(SETTING, undefined_forth=("g()",)),
        replace(SETTING_TOO, undefined_forth=("g()",), members=("trigger t.g",)),
    ),
    _without_time(),
]
# Names of parts and limits of a run are told by the parts (tests/unit/analysis/why/test_parts.py).
LABELS = {
    str(text)
    for table in (words.PARTS, words.BESIDE, words.LIMITS)
    for text in table.values()
}


def printed(answer: WhyAnswer):
    """Everything that a door prints of an answer."""
    yield answer.question
    yield from answer.sentences
    yield answer.length
    yield from answer.ablation.notes
    for row in answer.ablation.rows:
        yield from (row.name, row.time, row.cpu)
    for row in answer.differences:
        yield from (row.name, row.word, row.signs, row.looked, row.back)


def pattern(text):
    places = re.split(r"%\(\w+\)[sd]|%%", text)
    return re.compile(".*".join(map(re.escape, places)), re.DOTALL)


def test_every_text_of_the_modules_is_said_by_a_case():
    explanations = [*(case.explanation() for case in CASES), *ROWS, *NOTES]
    all_printed = [
        line
        for found in explanations
        for line in printed(answers.answer_explanation(found))
        if line
    ]
    lacking = []
    for module in MODULES:
        for _line, (_context, text) in texts.of_python(Path(module.__file__)):
            if text in LABELS:
                continue
            wanted = pattern(text)
            if not any(wanted.search(line) for line in all_printed):
                lacking.append(text)
    assert lacking == []


def test_no_case_names_what_stays_or_excludes_a_cause():
    false = re.compile(r"cannot act|does not act|code or the build|refuted")
    for case in CASES:
        assert not false.search(answers.answer_explanation(case.explanation()).sentence)


def test_log_ratios_of_the_cases_are_as_said():
    assert math.exp(TRUTH[B]) == pytest.approx(2.72, abs=0.01)
