"""Whether a pgbench run can be trusted, from its figures and messages as values."""

from dataclasses import replace

import pytest

from runs.tools.pgbench.messages import Messages
from runs.tools.pgbench.parser import find_problems, status_of
from runs.tools.pgbench.result import Expected, Figures, Problem, Settings
from runs.tools.pgbench.summary import Summary

# A hundred seconds at 10 tps.
GOOD = Figures(transactions_processed=1000, tps=10.0)
TIMED = Settings(clients=2, duration_s=100.0)
NO_FIGURES = Figures()


def problems(
    settings=TIMED,
    figures=GOOD,
    *,
    values=(("tps", 10.0),),
    messages=None,
    exit_status=0,
    **given,
):
    expected = Expected(
        **{name: given.pop(name) for name in list(given) if name in vars(Expected())}
    )
    summary = Summary(values=dict(values), **given)
    return find_problems(
        settings,
        figures,
        summary,
        messages or Messages(),
        exit_status=exit_status,
        expected=expected,
    )


def codes(*args, **options):
    return [problem.code for problem in problems(*args, **options)]


def told(*args, **options):
    """The only problem's code and message."""
    (problem,) = problems(*args, **options)
    return problem.code, problem.message


def test_a_run_as_asked_for_has_no_problem():
    assert problems(duration_s=100.0, clients=2, elapsed_s=100.0) == ()


@pytest.mark.parametrize(
    ("found", "figures", "aborted", "status"),
    [
        ([], GOOD, 0, "complete"),
        ([Problem("overran", "", note=True)], GOOD, 0, "complete"),
        ([Problem("ended_early", "")], GOOD, 0, "partial"),
        (
            [Problem("overran", "", note=True), Problem("ended_early", "")],
            GOOD,
            0,
            "partial",
        ),
        ([Problem("several_results", "")], GOOD, 0, "failed"),
        ([], replace(GOOD, tps=None), 0, "failed"),
        ([], replace(GOOD, transactions_processed=None), 0, "failed"),
        ([], replace(GOOD, transactions_processed=1), 0, "complete"),
        # 9.6 counts the transaction in which a client died.
        ([], replace(GOOD, transactions_processed=2), 2, "failed"),
        ([], replace(GOOD, transactions_processed=3), 2, "complete"),
    ],
)
def test_the_status_weighs_problems_and_figures(found, figures, aborted, status):
    messages = Messages(aborted_clients=set(range(aborted)))

    assert status_of(tuple(found), figures, messages) == status


@pytest.mark.parametrize(
    ("run", "died"),
    [(TIMED, "1 of 2 clients"), (replace(TIMED, clients=None), "1 clients")],
)
def test_aborted_clients_are_counted_and_the_first_message_is_quoted(run, died):
    messages = Messages(
        aborted_clients={0}, aborts=["first", "second"], errors=["first"]
    )

    assert told(run, messages=messages) == (
        "clients_aborted",
        f"{died} aborted; the first message: first",
    )


def test_an_aborted_run_without_aborted_clients_is_reported():
    assert codes(messages=Messages(run_aborted=True)) == ["run_aborted"]


@pytest.mark.parametrize(
    ("failures", "errors", "message"),
    [
        (["refused", "later"], [], "refused"),
        (["failed:"], [], "failed:"),
        (["failed:"], ["ERROR: x", "FATAL: too many"], "failed: FATAL: too many"),
        (["failed: no route"], ["FATAL: too many"], "failed: no route"),
    ],
)
def test_a_failed_connection_has_the_servers_reason(failures, errors, message):
    messages = Messages(connection_failures=failures, errors=errors)

    assert told(messages=messages) == (
        "connection_failed",
        f"A connection failed: {message}",
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ('relation "pgbench_branches" does not exist', "not_initialised"),
        ('database "bench" does not exist', "tool_error"),
        ("permission denied for relation pgbench_branches", "tool_error"),
    ],
)
def test_only_a_missing_table_is_a_missing_initialisation(error, code):
    assert codes(messages=Messages(errors=[error, "another"])) == [code]


def test_the_first_error_is_quoted():
    messages = Messages(errors=["first", "second"])

    assert told(messages=messages) == ("tool_error", "The tool reported: first")


@pytest.mark.parametrize(
    ("exit_status", "lines", "told_of_it"),
    [
        (1, [], ("exit_status", "The tool exited with status 1.")),
        (1, [" a \n", "b"], ("exit_status", "The tool exited with status 1: a")),
        (130, [], ("interrupted", "The tool was ended by SIGINT.")),
        (-15, [], ("interrupted", "The tool was ended by SIGTERM.")),
        (137, [], ("interrupted", "The tool was ended by SIGKILL.")),
    ],
)
def test_an_exit_status_is_explained(exit_status, lines, told_of_it):
    messages = Messages(unknown_lines=lines)

    assert told(messages=messages, exit_status=exit_status) == told_of_it


@pytest.mark.parametrize(
    ("figures", "options", "expected"),
    [
        (replace(GOOD, transactions_processed=0), {}, "nothing_processed"),
        (NO_FIGURES, {"values": ()}, "not_pgbench_output"),
        (NO_FIGURES, {}, "no_result"),
        (
            NO_FIGURES,
            {"values": (), "messages": Messages(run_aborted=True)},
            "no_result",
        ),
        (NO_FIGURES, {"values": (), "exit_status": 1}, "no_result"),
        (replace(GOOD, transactions_processed=None), {}, "no_result"),
        (GOOD, {"repeated": True}, "several_results"),
    ],
)
def test_output_without_one_whole_result_is_a_problem(figures, options, expected):
    assert codes(Settings(), figures, **options)[-1] == expected


def test_one_transaction_is_a_result():
    assert codes(Settings(), replace(GOOD, transactions_processed=1)) == []


def test_a_cut_line_is_a_note_that_quotes_80_characters():
    (problem,) = problems(cut_line="x" * 100)

    assert (problem.code, problem.note) == ("cut_line", True)
    assert problem.message.endswith(f": {'x' * 80!r}")


def test_skipped_transactions_counted_as_processed_are_a_note():
    values = {"late": 1, "equals": " =", "of_executed": None}.items()

    (problem,) = problems(Settings(), replace(GOOD, skipped=4), values=values)

    assert (problem.code, problem.note) == ("skipped_corrected", True)
    assert codes(Settings(), GOOD, values=values) == []
    assert codes(Settings(), replace(GOOD, skipped=4)) == []


@pytest.mark.parametrize(
    ("run", "expected", "found"),
    [
        (TIMED, {"clients": 3}, ["clients_differ"]),
        (TIMED, {"clients": 2}, []),
        (Settings(), {"clients": 3}, []),
        (TIMED, {"duration_s": 99.0}, ["duration_differs"]),
    ],
)
def test_only_what_is_known_of_both_can_differ(run, expected, found):
    assert codes(run, **expected) == found


@pytest.mark.parametrize(
    ("figures", "found"),
    [
        (replace(GOOD, transactions_processed=12), []),
        (replace(GOOD, transactions_processed=11), ["transactions_missing"]),
        (replace(GOOD, transactions_processed=13), ["transactions_missing"]),
        (replace(GOOD, transactions_processed=5, failed_transactions=3, skipped=4), []),
        (replace(GOOD, transactions_processed=None), ["no_result"]),
    ],
)
def test_each_transaction_asked_for_is_processed_failed_or_skipped(figures, found):
    assert codes(Settings(transactions_requested=12), figures) == found


@pytest.mark.parametrize(
    ("elapsed", "found"),
    [
        (None, []),
        (94.9, ["ended_early"]),
        (95.0, []),
        (110.0, []),
        (111.0, []),
        (111.5, ["overran"]),
    ],
)
def test_a_run_may_be_5_percent_short_and_10_percent_and_a_second_long(elapsed, found):
    assert codes(elapsed_s=elapsed) == found
    # The duration asked for counts if the tool does not repeat it.
    assert codes(Settings(), elapsed_s=elapsed, duration_s=100.0) == found


def test_a_run_that_overran_is_only_noted():
    (problem,) = problems(elapsed_s=200.0)

    assert (problem.note, problem.message) == (
        True,
        "The run took 200.0 s instead of 100 s.",
    )


def test_without_a_duration_no_time_is_wrong():
    assert codes(Settings(), elapsed_s=5.0) == []


@pytest.mark.parametrize(
    ("figures", "found"),
    [
        ({"transactions_processed": 950}, []),
        ({"transactions_processed": 949}, ["ended_early"]),
        # tps including connections is that of the whole time.
        ({"transactions_processed": 475, "tps_including_connections": 5.0}, []),
        (
            {"transactions_processed": 474, "tps_including_connections": 5.0},
            ["ended_early"],
        ),
        # Without it the time to connect is added.
        ({"transactions_processed": 450, "initial_connection_time_ms": 50000.0}, []),
        (
            {"transactions_processed": 450, "initial_connection_time_ms": 49900.0},
            ["ended_early"],
        ),
        ({"transactions_processed": 949_995, "tps": 10_000.0}, ["ended_early"]),
        # Nothing to compute a time from.
        ({"transactions_processed": None}, ["no_result"]),
        ({"tps": None}, ["no_result"]),
        ({"tps": 0.0}, []),
    ],
)
def test_figures_cover_a_time_of_their_own(figures, found):
    assert codes(TIMED, replace(GOOD, **figures)) == found


@pytest.mark.parametrize(
    ("threads", "lag", "tps", "elapsed", "found"),
    [
        (None, 7.0, 10.0, 94.0, []),
        (None, 7.0, 10.0, 93.95, ["ended_early"]),
        (4, 7.0, 10.0, 91.0, []),
        (4, 7.0, 10.0, 90.9, ["ended_early"]),
        (4, None, 10.0, 94.5, ["ended_early"]),
        (4, 7.0, None, 94.5, ["no_result", "ended_early"]),
    ],
)
def test_a_throttled_run_may_end_ten_mean_waits_early(
    threads, lag, tps, elapsed, found
):
    figures = replace(GOOD, schedule_lag_max_ms=lag, tps=tps)

    assert codes(replace(TIMED, threads=threads), figures, elapsed_s=elapsed) == found
