"""What an ablation proves, refutes, and leaves open: numbers with a known truth."""

import math
import random

import pytest

from runs.analysis.why import proof
from runs.analysis.why.proof import AGAIN, ALL, GIVEN, A, B


def arms(truth, rounds, spread=0.02, seed=1):
    """Values whose logs are `truth`, with a disturbance that a round shares."""
    source = random.Random(seed)
    found = {name: {} for name in truth}
    for each in range(rounds):
        shared = source.gauss(0, 0.3)
        for name, log in truth.items():
            found[name][each] = math.exp(log + shared + source.gauss(0, spread))
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


def test_an_arm_with_two_values_has_no_answer():
    measured = arms(TRUTH, 6)
    measured["decoy"] = {0: 1.0, 1: 1.0}
    assert proof.prove(measured, ["jit", "decoy"], has_ended=True) is None
    assert proof.lacking(measured, ["jit", "decoy"]) == {"decoy": 2}


def test_a_round_that_was_cut_off_does_not_count():
    measured = arms(TRUTH, 12)
    del measured["decoy"][11]
    assert proof.prove(measured, ["jit", "decoy"]).rounds == 6


def test_null_suspects_are_proven_in_few_campaigns():
    """At most 1 in 60, with room for the chance of 300 campaigns."""
    null = {A: 0.0, B: 0.3, AGAIN: 0.3, "a": 0.3, "b": 0.3, "c": 0.3, ALL: 0.3}
    false = sum(
        bool(proof.prove(arms(null, 12, spread=0.1, seed=n), ["a", "b", "c"]).explained)
        for n in range(300)
    )
    assert false <= 10
