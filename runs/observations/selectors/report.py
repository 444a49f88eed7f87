"""The report of an edition, in the form of the yearly reports: purpose, environment, procedure,
results, discussion, conclusion. Figures and tables are numbered; sentences are those of the pages.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from django.utils.translation import gettext as _
from django.utils.translation import override, pgettext

from runs.cells.selectors import factor_names as designs
from runs.charts.figure import Figure
from runs.compare.selectors.judge.ratio_pairs import STEPS
from runs.documents.selectors import conditions, reports, results
from runs.documents.selectors.explanations import explanations
from runs.grouping import by_key
from runs.models import Campaign, Edition, Run
from runs.models.runs import RunValidity
from runs.observations.selectors import anchors, editions
from runs.observations.selectors.editions import Again, Part
from runs.queue.selectors.validity import certificate_sentences
from runs.reports.report import Block, Bullets, Paragraph, Picture, Report, Section, Table
from runs.shared.formats import factor

# Draws the line of a part; charts of pages and reports are the same.
Draw = Callable[[Part], Figure | None]


def of_edition(
    edition: Edition,
    *,
    draw: Draw,
    language: str,
    address: str,
    today: date,
    before: Edition | None = None,
) -> Report:
    """The report of an edition, against `before`, else the last; `address` is the observation's."""
    with override(language):
        found, again = editions.parts(edition), editions.again(edition, before)
        sections = [
            (_("Purpose"), _purpose(edition, found)),
            (pgettext("section of a report", "Environment"), _environment(found)),
            (_("Procedure"), _procedure(edition, found)),
            *((_scenario(each), _results(each, draw)) for each in found),
            (_("Why versions differ"), _causes(found)),
            (
                _("Against another edition") if before else _("Against the edition before"),
                [*_against(again), *_anchors(edition)],
            ),
            (_("Doubtful runs"), _doubts(found)),
            (_("Discussion"), _written(edition.discussion)),
            (pgettext("section of a report", "Conclusion"), _conclusion(edition, found)),
            (_("Data"), _data(found, address)),
            (_("Appendix: commands"), _commands(found, address)),
        ]
        kept = [(title, blocks) for title, blocks in sections if blocks]
        return Report(
            name=f"{edition.observation.slug}-{edition.label}-{language}",
            language=language,
            title=f"{edition.observation.title} {edition.label}",
            subtitle=_("%(server)s · report of %(day)s")
            % {"server": edition.observation.server.name, "day": today},
            sections=tuple(_numbered(kept)),
            is_numbered=True,
        )


def _purpose(edition: Edition, found: Sequence[Part]) -> list[Block]:
    text = _(
        "How fast is each version of PostgreSQL on one machine, from the oldest to the newest, and "
        "between which two does it change?"
    )
    return [Paragraph(edition.purpose or text), Bullets(tuple(_scenario(each) for each in found))]


def _environment(found: Sequence[Part]) -> list[Block]:
    if not found:
        return []
    first = found[0].campaign
    return [
        *conditions.machines(first),
        *conditions.programs(first),
        *conditions.settings(first),
    ]


def _procedure(edition: Edition, found: Sequence[Part]) -> list[Block]:
    text = _(
        "All versions are measured in each round, so that what disturbs the machine disturbs all "
        "of them alike. %(anchor)s is the anchor: each edition measures it, and what it gains or "
        "loses from one edition to the next is the machine's."
    )
    blocks: list[Block] = [Paragraph(text % {"anchor": edition.observation.anchor})]
    for each in found:
        blocks += [
            Paragraph(f"{_scenario(each)}. {_(each.campaign.scenario.description)}"),
            conditions.kept(each.campaign),
            Paragraph(reports.order(each.campaign)),
            *([Bullets(tuple(each.remarks))] if each.remarks else []),
        ]
    return blocks


def _results(part: Part, draw: Draw) -> list[Block]:
    figure = draw(part)
    caption = _("The line through versions, with its interval (95 %)")
    line = [Picture(f"line-{part.campaign.pk}", caption, figure)] if figure else []
    found = results.results(part.campaign, most_metrics=1)
    # Each campaign has a picture of its own file.
    named = [
        replace(each, name=f"{each.name}-{part.campaign.pk}") if isinstance(each, Picture) else each
        for each in (*found, *results.verdicts(part.campaign, subject=STEPS))
    ]
    return [*line, *named]


def _causes(found: Sequence[Part]) -> list[Block]:
    """What ablations prove; nothing where none was measured."""
    causes = [(each, explanations(each.campaign)) for each in found]
    return [
        block
        for part, blocks in causes
        if blocks
        for block in (Paragraph(_scenario(part)), *blocks)
    ]


def _against(again: Iterable[Again]) -> Iterator[Block]:
    for each in again:
        yield Paragraph(each.sentence)
        yield from (Paragraph(remark) for remark in each.remarks)
        here, there = each.names
        heads = (
            _("Version"),
            f"{here} : {there}",
            there,
            here,
            _("Change"),
            _("interval (95 %)"),
        )
        rows = tuple(
            (
                f"{other.version} : {each.anchor}",
                factor(other.direct.ratio),
                factor(other.before.ratio),
                factor(other.now.ratio),
                factor(other.change.ratio),
                f"{factor(other.change.low)} – {factor(other.change.high)}"
                if other.change.low
                else "–",
            )
            for other in each.others
        )
        if rows:
            caption = _("Versions against the anchor in both editions")
            yield Table(caption, heads, rows, frozenset((1, 2, 3, 4, 5)))


def _anchors(edition: Edition) -> Iterator[Block]:
    text = _("The anchor %(anchor)s from edition to edition: %(scenario)s")
    for place, (scenario, figure) in enumerate(anchors.line(edition)):
        values = {"anchor": edition.observation.anchor, "scenario": scenario}
        yield Picture(f"anchor-{place}", text % values, figure)


def _doubts(found: Sequence[Part]) -> list[Block]:
    """Each condition with runs that its certificate doubts or that are left out, and the reason."""
    doubted = [(each, list(_doubted(each.campaign))) for each in found]
    number = sum(len(of_part) for _part, of_part in doubted)
    total = sum(each.progress.total for each in found)
    text = _("%(count)d of %(total)d runs are doubtful or invalid; invalid runs do not count.")
    blocks: list[Block] = [Paragraph(text % {"count": number, "total": total})]
    for part, of_part in doubted:
        if of_part:
            heads = (_("Condition"), _("Judgement"), _("Runs"), _("Reason, of the first of them"))
            rows = tuple(_alike(part.campaign, of_part))
            blocks.append(Table(f"{_('Doubtful runs')}: {_scenario(part)}", heads, rows))
    return blocks


def _alike(campaign: Campaign, doubted: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    words = designs.words(campaign)
    alike = by_key(((run.cell.ordinal, run.cell_id, run.validity), run) for run in doubted)
    for (_place, _cell, validity), listed in sorted(alike.items(), key=lambda each: each[0]):
        reason = next((each.message for each in certificate_sentences(listed[0])), "–")
        yield (
            words.listed(listed[0].cell.levels),
            str(RunValidity(validity).label),
            ", ".join(str(run.pk) for run in listed),
            reason,
        )


def _doubted(campaign: Campaign) -> Iterable[Run]:
    ended = campaign.runs.filter(state__in=(Run.State.FINISHED, Run.State.WITHDRAWN))
    return ended.filter(validity__in=Run.DOUBTED).select_related("cell").order_by("pk")


def _conclusion(edition: Edition, found: Sequence[Part]) -> list[Block]:
    """People's words; before they write, the sentences of each step."""
    sentences = [Bullets(tuple(each.sentences)) for each in found if each.sentences]
    return _written(edition.conclusion) or [*sentences]


def _written(text: str) -> list[Block]:
    return [Paragraph(text)] if text else []


def _data(found: Sequence[Part], address: str) -> list[Block]:
    runs = Run.objects.filter(campaign__in=[each.campaign for each in found], state="finished")
    text = _("Each of the %(number)d runs with its certificate and commands: %(address)s")
    return [Paragraph(text % {"number": runs.count(), "address": address})]


def _commands(found: Sequence[Part], address: str) -> list[Block]:
    """What one run of each scenario executed: cluster, data, warming up, load."""
    return [
        replace(each, caption=f"{_scenario(part)}: {each.caption}")
        for part in found
        for each in reports.first_run(part.campaign, address)
    ]


def _scenario(part: Part) -> str:
    return str(_(part.campaign.scenario.title))


def _numbered(sections: Sequence[tuple[str, Sequence[Block]]]) -> Iterator[Section]:
    numbers: Counter[type[Block]] = Counter()
    names = {Picture: _("Figure %(number)d"), Table: _("Table %(number)d")}
    for number, (title, blocks) in enumerate(sections, start=1):
        made: list[Block] = []
        for block in blocks:
            if isinstance(block, Picture | Table):
                numbers[type(block)] += 1
                name = names[type(block)] % {"number": numbers[type(block)]}
                made.append(replace(block, caption=f"{name}: {block.caption}".removesuffix(": ")))
            else:
                made.append(block)
        yield Section(f"{number}. {title}", tuple(made))
