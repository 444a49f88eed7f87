"""Reports of campaigns: everything that one needs to know about them, in one document."""

from collections.abc import Iterable, Sequence
from datetime import date

from django.utils.translation import gettext as _
from django.utils.translation import override

from runs.models import Annotation, Campaign
from runs.reports.archive import Block, Facts, Listing, Paragraph, Remark, Report, Section
from runs.reports.shell_script import RecordedRun, shell_script
from runs.selectors.archive.words import citation
from runs.selectors.campaigns import annotations
from runs.selectors.campaigns import factor_names as designs
from runs.selectors.reports import (
    conditions as report_conditions,
)
from runs.selectors.reports import (
    published as report_published,
)
from runs.selectors.reports import (
    results as report_results,
)
from runs.selectors.runs import recorded_commands as recorded
from runs.templatetags.formats import told

# A longer script of all runs is only a download; the report then has that of the first run.
MOST_SCRIPT_CHARACTERS = 200_000


def of_campaign(campaign: Campaign, *, language: str, address: str, today: date) -> Report:
    """The report of any campaign: executed here, uploaded, or published.

    `address` is that of the campaign's page. Expensive: some forty queries, whatever the size,
    and three for each of several servers.
    """
    with override(language):
        published = hasattr(campaign, "published")
        sections = _published(campaign) if published else _executed(campaign)
        sections += [
            *_remarks(campaign),
            (_("Appendix: commands"), _appendix(campaign, address)),
            (_("Citation"), [Paragraph(_citation(campaign, address, today))]),
        ]
        return Report(
            name=f"{campaign.slug}-{language}",
            language=language,
            title=told(campaign, "title"),
            subtitle=_subtitle(campaign, today),
            sections=tuple(Section(title, tuple(blocks)) for title, blocks in sections if blocks),
        )


def _executed(campaign: Campaign) -> list[tuple[str, Sequence[Block]]]:
    return [
        (_("Purpose"), _purpose(campaign)),
        (
            _("Conditions"),
            [
                *report_conditions.machines(campaign),
                *report_conditions.programs(campaign),
                *report_conditions.settings(campaign),
            ],
        ),
        (_("Method"), [report_conditions.kept(campaign), Paragraph(_order(campaign))]),
        (_("Results"), report_results.results(campaign)),
        (_("Verdicts"), report_results.verdicts(campaign)),
    ]


def _published(campaign: Campaign) -> list[tuple[str, Sequence[Block]]]:
    table = campaign.published
    return [
        (_("Purpose"), _purpose(campaign)),
        (_("Conditions"), report_published.machines(table)),
        (_("Method"), [*report_published.method(table), report_conditions.kept(campaign)]),
        (_("Results"), report_published.results(campaign)),
        (_("Findings of the publication, in our words"), report_published.findings(table)),
        (_("Discrepancies"), report_published.discrepancies(table)),
    ]


def _purpose(campaign: Campaign) -> list[Block]:
    question = told(campaign, "question") if campaign.question else ""
    scenario = _("Scenario"), _(campaign.scenario.title)
    return [*([Paragraph(question)] if question else []), Facts((scenario,))]


def _order(campaign: Campaign) -> str:
    text = _("Of the repeats the median is taken.")
    if campaign.seed:
        text += " " + _("The runs were executed in a random order; its seed is %(seed)s.") % {
            "seed": campaign.seed
        }
    return text


def _remarks(campaign: Campaign) -> list[tuple[str, Sequence[Block]]]:
    """What people wrote: discussion, conclusions, notes."""
    found = annotations.of_campaign(campaign)
    kinds = Annotation.Kind
    words = designs.words(campaign)

    def of(kind: Annotation.Kind) -> Iterable[Annotation]:
        return (each for each in found if each.kind == kind)

    notes = [
        Remark(each.text, " · ".join(filter(None, (_point(each, words), _signed(each)))))
        for each in of(kinds.NOTE)
    ]
    return [
        (_("Discussion"), [Remark(each.text, _signed(each)) for each in of(kinds.DISCUSSION)]),
        (_("Conclusion"), [Remark(each.text, _signed(each)) for each in of(kinds.CONCLUSION)]),
        (_("Notes"), notes),
    ]


def _signed(annotation: Annotation) -> str:
    return annotations.signature(annotation)


def _point(annotation: Annotation, words: designs.Words) -> str:
    """The cell that a note is about: Clients 8, Version 16.14."""
    if annotation.cell is None:
        return ""
    return words.listed(annotation.cell.levels)


def _appendix(campaign: Campaign, address: str) -> list[Block]:
    listings: list[Block] = []
    for server, name in (designs.server_names(campaign) or {"": ""}).items():
        runs = recorded.of_campaign(campaign, server=server)
        if runs:
            listings.append(_script(campaign, runs, address, name))
    return listings


def _script(campaign: Campaign, runs: Sequence[RecordedRun], address: str, server: str) -> Listing:
    """What a server executed, to be repeated by hand on a similar machine."""
    script = shell_script(campaign.slug, campaign.title, runs, address=address)
    caption = _("All runs in their order, as a shell script")
    if len(script) > MOST_SCRIPT_CHARACTERS:
        script = shell_script(campaign.slug, campaign.title, runs[:1], address=address)
        caption = _("The first run as a shell script; that of all runs is on the campaign's page")
    return Listing(f"{server}: {caption}" if server else caption, script)


def _citation(campaign: Campaign, address: str, today: date) -> str:
    if hasattr(campaign, "published"):
        return citation(campaign.published, address)
    return f"“{told(campaign, 'title')}”, BenchLab, {campaign.created_at:%Y}. {address} ({today})"


def _subtitle(campaign: Campaign, today: date) -> str:
    if hasattr(campaign, "published"):
        return report_published.where(campaign.published)
    parts = (
        str(campaign.get_origin_display()),
        f"{campaign.created_at:%Y-%m-%d}",
        _("report of %(day)s") % {"day": today},
    )
    return " · ".join(parts)
