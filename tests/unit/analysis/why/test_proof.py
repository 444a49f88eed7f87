"""What an ablation proves, refutes, and leaves open: numbers with a known truth."""

import math
import random

import pytest

from runs.analysis.why import proof
from runs.analysis.why.proof import AGAIN, ALL, GIVEN, A, B


def arms(truth, rounds, spread=0.02, seed=1):
    """Values whose logs are `truth`, with a disturbance that a round shares.

    `spread` is that of all arms, or of each by its name.
    """
    source = random.Random(seed)
    of_arm = spread if isinstance(spread, dict) else dict.fromkeys(truth, spread)
    found = {name: {} for name in truth}
    for each in range(rounds):
        shared = source.gauss(0, 0.3)
        for name, log in truth.items():
            found[name][each] = math.exp(log + shared + source.gauss(0, of_arm[name]))
    return found


TRUTH = {A: 0.0, B: 0.4, AGAIN: 0.4, "jit": 0.1, "decoy": 0.4, ALL: 0.1}


def test_the_cause_is_proven_with_its_share_and_the_decoy_is_not():
    found = proof.prove(arms(TRUTH, 12), ["jit", "decoy"])
    jit, decoy = found.suspects
    assert (jit.answer, decoy.answer) == ("proven", "refuted")
    assert jit.share.low < 0.75 < jit.share.high
    assert decoy.least_seen < 0.1
    assert found.effect.low < math.exp(0.4) < found.effect.high
    assert found.explained == (jit,)
    assert not found.interacts


def test_there_are_two_looks_and_nothing_between_them():
    assert proof.prove(arms(TRUTH, 5), ["jit", "decoy"]) is None
    early = proof.prove(arms(TRUTH, 6), ["jit", "decoy"])
    between = proof.prove(arms(TRUTH, 11), ["jit", "decoy"])
    assert (early.rounds, between.rounds) == (6, 6)
    assert not early.is_final
    assert [each.answer for each in early.suspects] == ["proven", "open"]


def test_no_verdict_where_the_control_is_not_one():
    found = proof.prove(arms({**TRUTH, AGAIN: 0.6}, 12), ["jit", "decoy"])
    assert not found.is_controlled
    assert {each.answer for each in found.suspects} == {"no_verdict"}


def test_no_verdict_where_the_difference_is_not_there_any_more():
    found = proof.prove(arms({**TRUTH, A: 0.4}, 12, spread=0.05), ["jit", "decoy"])
    assert not found.has_effect
    assert found.explained == ()


def test_what_makes_it_worse_explains_nothing():
    found = proof.prove(arms({**TRUTH, "jit": 0.7}, 12), ["jit", "decoy"])
    assert found.suspects[0].answer == "worse"


def test_single_shares_that_do_not_add_up_interact():
    together = {**TRUTH, "jit": 0.4, "decoy": 0.4, ALL: 0.0}
    found = proof.prove(arms(together, 12), ["jit", "decoy"])
    assert found.interacts
    assert found.all.share.value == pytest.approx(1.0, abs=0.1)


def test_two_that_each_suffice_are_proven_together_and_by_what_a_is_given():
    """As two settings that each keep an index away."""
    truth = {A: 0.0, B: 4.0, AGAIN: 4.0, "x": 4.0, "y": 4.0, ALL: 0.05}
    truth |= {f"{GIVEN}x": 4.0, f"{GIVEN}y": 4.0}
    found = proof.prove(arms(truth, 12), ["x", "y"])
    assert found.is_joint
    assert [share.answer for share in found.suspects] == ["refuted", "refuted"]
    assert [share.name for share in found.sufficient] == [f"{GIVEN}x", f"{GIVEN}y"] or [
        share.name for share in found.sufficient
    ] == [f"{GIVEN}y", f"{GIVEN}x"]
    assert all(share.most_seen < 0.1 for share in found.suspects)


def test_no_effect_alone_needs_an_interval_that_is_small():
    """Not proven is not refuted: a half of the difference lies within the interval."""
    truth = {A: 0.0, B: 0.4, AGAIN: 0.4, "x": 0.25, "y": 0.4, ALL: 0.0}
    found = proof.prove(arms(truth, 12, spread=0.35), ["x", "y"])
    x = found.suspects[0]
    assert x.answer == "undecided"
    assert x.ratio.low < 0.8


def test_of_a_campaign_that_has_ended_all_values_count():
    measured = arms(TRUTH, 12)
    del measured["decoy"][11]
    del measured[A][3]
    found = proof.prove(measured, ["jit", "decoy"], has_ended=True)
    assert (found.rounds, found.missing, found.is_final) == (12, 2, True)
    assert [share.answer for share in found.suspects] == ["proven", "refuted"]
    whole = proof.prove(arms(TRUTH, 12), ["jit", "decoy"])
    assert found.effect.value == pytest.approx(whole.effect.value, rel=0.02)


def test_arms_without_a_common_round_are_compared_by_those_of_the_others():
    measured = arms({**TRUTH, f"{GIVEN}jit": 0.3}, 6)
    for name, lost in ((A, (3, 4, 5)), (f"{GIVEN}jit", (0, 1, 2))):
        for number in lost:
            del measured[name][number]
    found = proof.prove(measured, ["jit", "decoy"], has_ended=True)
    (given,) = found.given
    assert given.ratio.value == pytest.approx(math.exp(-0.3), rel=0.05)
    assert given.ratio.high < 1


def test_an_arm_with_two_values_has_no_answer():
    measured = arms(TRUTH, 6)
    measured["decoy"] = {0: 1.0, 1: 1.0}
    assert proof.prove(measured, ["jit", "decoy"], has_ended=True) is None
    assert proof.lacking(measured, ["jit", "decoy"]) == {"decoy": 2}


def test_a_round_that_was_cut_off_does_not_count():
    measured = arms(TRUTH, 12)
    del measured["decoy"][11]
    assert proof.prove(measured, ["jit", "decoy"]).rounds == 6


# Three decoys, or one and A with what B has of it and of the cause.
NULL = {A: 0.0, B: 1.0, AGAIN: 1.0, "cause": 0.0, ALL: 0.0}
FAMILIES = (
    NULL | dict.fromkeys(("x", "y", "z"), 1.0),
    NULL | {"x": 1.0, f"{GIVEN}cause": 1.0, f"{GIVEN}x": 0.0},
)


@pytest.mark.parametrize("of_slow", [1, 3, 1 / 3])
@pytest.mark.parametrize("truth", FAMILIES, ids=["of B", "of B and of A"])
def test_null_suspects_are_proven_in_few_campaigns(truth, of_slow):
    """At most 1 in 60 campaigns, of time and of processor time together, whichever side scatters
    more; with room for the chance of 100 campaigns."""
    names = [name for name in truth if name in {"cause", "x", "y", "z"}]
    false = 0
    for seed in range(100):
        spread = {name: 0.1 * (of_slow if log else 1) for name, log in truth.items()}
        proofs = [
            proof.prove(arms(truth, 12, spread=spread, seed=seed + metric), names)
            for metric in (0, 10_000)
        ]
        said = {
            share.name.removeprefix(GIVEN)
            for found in proofs
            for share in (*found.explained, *found.sufficient)
        }
        false += bool(said - {"cause"})
    assert false <= 4


def test_one_metric_alone_shares_its_level_with_no_other():
    """As of a statement's time: half as much evidence suffices."""
    measured = arms({**TRUTH, "decoy": 0.36}, 12, spread=0.03, seed=6)
    of_one, of_two = (
        proof.prove(measured, ["jit", "decoy"], metrics=metrics).suspects[1]
        for metrics in (1, 2)
    )
    assert of_two.p_value == pytest.approx(2 * of_one.p_value)


def test_a_quiet_fast_side_lends_the_slow_one_no_certainty():
    """What scatters in B alone is not outweighed by the arms of A, which do not scatter."""
    truth = {A: 0.0, B: 2.0, AGAIN: 2.0, "jit": 0.0, "decoy": 1.9, ALL: 0.0}
    of_b = {name: 0.2 if log else 0.001 for name, log in truth.items()}
    jit, decoy = proof.prove(
        arms(truth, 6, spread=of_b), ["jit", "decoy"], has_ended=True
    ).suspects
    assert jit.answer == "proven"
    assert decoy.ratio.high / decoy.ratio.low > 1.3
