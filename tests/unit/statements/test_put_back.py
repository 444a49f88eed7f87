"""Which settings a difference between plans points to, by the defaults of both versions."""

import pytest

from runs.analysis.why.proof import AGAIN, ALL, A, B
from runs.statements import put_back, trial
from runs.statements.plan_shape import PlanDifference
from runs.statements.put_back import PutBack


def found(base, head, **difference):
    names = put_back.settings(PlanDifference(**difference), base, head)
    return {one.name: one.value for one in names}


def test_a_plan_that_becomes_parallel_by_a_default_is_put_back_by_it():
    expected = PutBack("max_parallel_workers_per_gather", "0", "2", "0")
    difference = PlanDifference(becomes_parallel=True)
    assert put_back.settings(difference, "9.6.24", "10.23")[0] == expected
    assert put_back.settings(difference, "12.22", "13.22") == ()
    # A version that knows no parallel plans.
    assert put_back.settings(difference, "9.5.3", "10.23")[0].base is None


@pytest.mark.parametrize(
    ("base", "head", "difference", "names"),
    [
        ("11.22", "12.22", {"gains_jit": True}, {"jit": "off"}),
        ("12.22", "13.22", {"gains_jit": True}, {}),
        (
            "14.19",
            "15.14",
            {"gains_spill": True},
            {"hash_mem_multiplier": "1"},
        ),
        ("9.3.5", "9.4.26", {"loses_spill": True}, {"work_mem": "1024kB"}),
        (
            "13.22",
            "14.19",
            {"only_head": ("Memoize",)},
            {"enable_memoize": "off"},
        ),
        (
            "9.3.5",
            "9.4.26",
            {"only_head": ("Seq Scan on t",)},
            {"effective_cache_size": "131072kB"},
        ),
        ("13.22", "18.0", {"only_head": ("Seq Scan on t",)}, {}),
        ("13.22", "18.0", {}, {}),
        ("13.22", "no version", {"gains_jit": True}, {}),
    ],
)
def test_what_is_put_back_has_another_default_and_a_sign(base, head, difference, names):
    assert found(base, head, **difference) == names


def test_the_later_default_is_put_back_on_an_older_version():
    assert found("12.22", "11.22", loses_jit=True) == {"jit": "on"}
    # What it does not know cannot be put back there.
    assert found("14.19", "13.22", only_base=("Memoize",)) == {}


def test_a_cte_is_inlined_where_its_scan_is_gone():
    assert put_back.is_inlined(PlanDifference(only_base=("CTE Scan on some",)))
    both = ("CTE Scan on some",)
    assert not put_back.is_inlined(PlanDifference(only_base=both, only_head=both))


def test_a_level_is_read_as_it_was_written():
    settings = {"jit": "off", "work_mem": "1024kB"}
    arms = trial.arms(trial.level(settings))
    assert list(arms) == [B, AGAIN, "jit", "work_mem", ALL]
    assert arms[ALL] == settings
    assert trial.arms(trial.level({"jit": "off"})).keys() == {B, AGAIN, "jit"}
    assert trial.arms(A) == {A: {}}


@pytest.mark.parametrize("level", ["jit = off'; \\! id", "jit = off; x", "", "a b = 1"])
def test_a_level_that_is_no_setting_never_reaches_psql(level):
    with pytest.raises(ValueError, match="no settings"):
        trial.arms(level)
