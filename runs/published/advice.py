"""What a reader of a publication would miss: no faults, but worth a second look."""

from collections.abc import Iterator
from dataclasses import dataclass

from runs.published.document import CampaignEntry, Document


@dataclass(frozen=True)
class Advice:
    """What is not there, with what to do; `campaign` is empty if it is of the whole file."""

    campaign: str
    text: str

    def __str__(self) -> str:
        return f"{self.campaign}: {self.text}" if self.campaign else self.text


def advice(document: Document) -> list[Advice]:
    """What the file lacks, first of the publication and then of each campaign."""
    of_source = [Advice("", text) for text in _advise_source(document)]
    of_campaigns = [
        Advice(campaign.slug, text)
        for campaign in document.campaigns
        for text in _advise_campaign(campaign)
    ]
    return of_source + of_campaigns


def _advise_source(document: Document) -> Iterator[str]:
    source = document.source
    if not (source.url or source.traces):
        yield "no address of the original: give “url”, or “traces” that lead towards it"
    if not source.licence:
        yield "no licence: give “licence” if the publication states one"
    if source.transcribed is None:
        yield "no day of the transcription: give “transcribed”"
    if not source.summary.en:
        yield "no summary: say in a sentence what was measured"


def _advise_campaign(campaign: CampaignEntry) -> Iterator[str]:
    databases = [node for node in campaign.nodes if node.role == "database"]
    levels = {
        **campaign.levels,
        **campaign.factors,
        **{
            name: level
            for column in campaign.columns
            for name, level in column.levels.items()
        },
        **{column.factor: "" for column in campaign.columns if column.factor},
    }
    if not campaign.method.en:
        yield "no method: say how it was measured, in order and with durations"
    if not campaign.question.en:
        yield "no question: say what the table answers"
    if not any(node.hardware for node in databases):
        yield "no machine: give a node of the role database with its “hardware”"
    if not any(node.configuration for node in databases):
        yield "no settings: give “configuration” if the publication prints any"
    if "version" not in levels and not any(
        "version" in node.levels for node in databases
    ):
        yield "no version of PostgreSQL: give “levels: {version: …}”, or note that none is printed"
    if campaign.repeats is None and not campaign.notes:
        yield "no number of repeats: give “repeats” and “statistic”, or note that none is printed"
    if not campaign.findings:
        yield "no conclusion: say what the publication concludes, or what the figures show"
    if not campaign.reproduce:
        yield "no way to repeat it: give “reproduce” with a scenario, or with “why_not”"
