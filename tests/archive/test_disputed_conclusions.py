"""A conclusion that a discrepancy of its table contradicts is never printed as an answer alone."""

import re
from html import unescape

import pytest

from runs.models import PublishedTable
from runs.published import reading
from runs.topics.catalogue import TOPICS

# Discrepancies that contradict no conclusion of the archive: what the publication says of its
# set-up, its figures and its methods, or in sentences that BenchLab does not repeat.
ELSEWHERE = {
    "約 1.5MB",  # the size of a database
    "260 億レコード",
    "64 億レコード",
    "参照系 … 約 119 倍",  # the closing section's; the table's own conclusion is right
    "成功時と比較して … 半分程度",
    "同時接続クライアント数が少ないとき … よい TPS",  # stands as a disagreement
    "TPS中央値を出した際",
    "3.63 %",
    "73%",
    "▲76%~▲91%",
    "平均14ms, 平均70ms",
    "99.93 %, 81.98 %, 83.00 %",
    "-46%",
    "+18%",
    "+5.4%",
}
SERIOUS = ("wrong_conclusion", "wrong_figure")


def campaigns():
    for path in reading.files():
        yield from reading.read(path).campaigns


def test_every_serious_discrepancy_disputes_a_conclusion_or_is_known_to_dispute_none():
    aimless = set()
    for campaign in campaigns():
        conclusions = [
            finding for finding in campaign.findings if finding.by == "publication"
        ]
        for discrepancy in campaign.discrepancies if conclusions else ():
            is_aimed = any(map(discrepancy.disputes, conclusions))
            if discrepancy.weight in SERIOUS and not is_aimed:
                aimless.add(discrepancy.printed)
    assert aimless <= ELSEWHERE


def test_no_conclusion_repeats_a_disputed_figure_without_being_disputed():
    """By the figures with a unit: what is printed wrongly, and is not what is computed."""
    figure = re.compile(r"\d[\d.,]*(?= ?(?:%|倍|times))")
    for campaign in campaigns():
        for discrepancy in campaign.discrepancies:
            wrong = set(figure.findall(discrepancy.printed)) - set(
                figure.findall(discrepancy.recomputed)
            )
            for finding in campaign.findings:
                repeated = wrong & set(figure.findall(finding.text.en))
                if finding.by != "publication" or discrepancy.printed in ELSEWHERE:
                    continue
                assert not repeated or discrepancy.disputes(finding), finding.text.en


@pytest.mark.django_db
def test_every_door_prints_what_is_computed_beside_a_disputed_conclusion(
    client, whole_archive
):
    tables = PublishedTable.objects.select_related("campaign__scenario")
    disputed = [
        (table, finding)
        for table in tables
        for finding in table.findings
        if "computed" in finding
    ]
    assert len(disputed) >= 9
    themes = {scenario: topic.slug for topic in TOPICS for scenario in topic.scenarios}
    seen = 0
    for table, finding in disputed:
        campaign = table.campaign
        doors = [
            "/",
            "/archive/",
            f"/campaigns/{campaign.slug}/",
            f"/campaigns/?q={campaign.slug}",
            f"/search/?q={campaign.slug}",
            f"/campaigns/{campaign.slug}/report/?format=html",
        ]
        if campaign.scenario.slug in themes:
            doors.append(f"/topics/{themes[campaign.scenario.slug]}/")
        for door in doors:
            page = client.get(door)
            assert page.status_code == 200, door
            text = " ".join(unescape(page.content.decode()).split())
            said = text.count(finding["en"])
            told = f"{finding['en']} BenchLab computes: {finding['computed']}"
            assert text.count(told) == said, (door, finding["en"])
            seen += said
    assert seen > 2 * len(disputed)
