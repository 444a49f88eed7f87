"""What a certificate says of a run in slices, beside the limits of whole runs."""

from dataclasses import replace

import pytest

from runs.analysis.certificate import (
    SHARED_IN_TURN,
    Certificate,
    Evidence,
    Usage,
    certify,
)
from runs.analysis.machine_speed import PartSpeed
from runs.models import Run
from runs.queue.selectors.certificate_words import certificate_sentences

TURNS = 36
USAGE = Usage(
    "db", 2, 60.0, busy=118.0, stolen=0.0, servers=10.0, kernel=2.0, generator=5.0
)
QUIETER = replace(USAGE, servers=60.0, stolen=30.0, throttled=30.0)
SLOW = {
    "db": [PartSpeed(part, 50.0, 100.0, 0.85) for part in ("core", "memory", "disk")]
}
IN_TURN = "In slices all runs of a round share this in turn"


def sentences(certificate: Certificate) -> dict[str, str]:
    findings = [
        {"code": each.code, "weight": each.weight, "figures": dict(each.figures)}
        for each in certificate.findings
    ]
    run = Run(certificate={"findings": findings})
    return {each.code: each.message for each in certificate_sentences(run)}


@pytest.mark.parametrize("usage", [USAGE, QUIETER])
def test_a_finding_that_weighs_less_in_slices_says_why(usage):
    """Whatever the rules weigh differently in slices, the sentence has the reason."""
    alone = certify(Evidence(usage=[usage], duration_s=60.0, speeds=SLOW))
    in_turn = certify(
        Evidence(usage=[usage], duration_s=60.0, speeds=SLOW, turns=TURNS)
    )
    lighter = {
        finding.code
        for finding, whole in zip(in_turn.findings, alone.findings, strict=True)
        if finding.weight != whole.weight
    }
    assert lighter == {
        finding.code for finding in alone.findings if finding.code in SHARED_IN_TURN
    }
    said = sentences(in_turn)
    assert {code for code, text in said.items() if IN_TURN in text} == lighter
    assert not any(IN_TURN in text for text in sentences(alone).values())


def test_all_that_is_shared_in_turn_is_tried_above():
    found = certify(Evidence(usage=[QUIETER], duration_s=60.0, speeds=SLOW))
    assert {each.code for each in found.findings} >= SHARED_IN_TURN
