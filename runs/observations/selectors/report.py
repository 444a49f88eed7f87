"""The report of an edition, in the form of the yearly reports: purpose, environment, procedure,
results, discussion, conclusion. Figures and tables are numbered; sentences are those of the pages.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from django.utils.translation import gettext as _
from django.utils.translation import override, pgettext

from runs.campaigns.selectors.report_parts import conditions, recorded_commands, results
from runs.campaigns.selectors.report_parts.explanations import explanations
from runs.charts.figure import Figure
from runs.compare.selectors.judge.ratio_pairs import STEPS
from runs.models import Campaign, Edition, Run
from runs.observations.selectors import anchors, answers, doubts, editions
from runs.observations.selectors.answers import EditionAnswer
from runs.observations.selectors.editions import Again, Part
from runs.reports.report import (
    Block,
    Bullets,
    Listing,
    Paragraph,
    Picture,
    Report,
    Section,
    Table,
)
from runs.shared.formats import factor

# Draws the line of a part; charts of pages and reports are the same.
Draw = Callable[[Part], Figure | None]


def make_report(
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
        edition_parts, again = editions.parts(edition), editions.again(edition, before)
        answer = answers.answer_parts(edition, edition_parts, again)
        sections = [
            (_("Purpose"), _purpose(edition, edition_parts)),
            (
                pgettext("section of a report", "Environment"),
                _environment(edition_parts),
            ),
            (_("Procedure"), _procedure(edition, edition_parts)),
            *(
                (_scenario(part_of_edition), _results(part_of_edition, draw))
                for part_of_edition in edition_parts
            ),
            (_("Why versions differ"), _causes(edition_parts)),
            (
                _("Against another edition")
                if before
                else _("Against the edition before"),
                [*_against(again), *_anchors(edition)],
            ),
            (_("Doubtful runs"), _doubts(edition_parts)),
            (_("Discussion"), [*_written(edition.discussion), *_discussed(answer)]),
            (
                pgettext("section of a report", "Conclusion"),
                _conclusion(edition, answer),
            ),
            (_("Revision history"), _written(edition.history)),
            (_("Licence"), _written(edition.licence)),
            (_("Data"), _data(edition_parts, address)),
            (_("Appendix: commands"), _commands(edition_parts, address)),
        ]
        filled_sections = [(title, blocks) for title, blocks in sections if blocks]
        return Report(
            name=f"{edition.observation.slug}-{edition.label}-{language}",
            language=language,
            title=f"{edition.observation.title} {edition.label}",
            subtitle=_("%(server)s · report of %(day)s")
            % {"server": edition.observation.server.name, "day": today},
            sections=tuple(_numbered(filled_sections)),
            is_numbered=True,
        )


def _purpose(edition: Edition, edition_parts: Sequence[Part]) -> list[Block]:
    text = _(
        "How fast is each version of PostgreSQL on one machine, from the oldest to the newest, and "
        "between which two does it change?"
    )
    return [
        Paragraph(edition.purpose or text),
        Bullets(tuple(_scenario(part_of_edition) for part_of_edition in edition_parts)),
    ]


def _environment(edition_parts: Sequence[Part]) -> list[Block]:
    if not edition_parts:
        return []
    first_campaign = edition_parts[0].campaign
    return [
        *conditions.machines(first_campaign),
        *conditions.programs(first_campaign),
        *_kernel(first_campaign),
        *conditions.settings(first_campaign),
    ]


def _kernel(campaign: Campaign) -> Iterator[Block]:
    """What was set in the system: sysctls, huge pages, limits and governor."""
    runs = campaign.runs.filter(environment__isnull=False).select_related("environment")
    run = runs.order_by("pk").first()
    facts = (
        run.environment.facts if run is not None and run.environment is not None else {}
    )
    rows = {
        str(name): str(value)
        for name, value in facts.get("kernel_settings", {}).items()
    }
    limits = facts.get("limits", {}).items()
    rows |= {
        f"ulimit {name}": "unlimited" if n is None else str(n) for name, n in limits
    }
    for name in ("huge_pages", "governor"):
        if facts.get(name):
            rows[name] = str(facts[name])
    if rows:
        yield Table(
            _("Settings of the system"), (_("Setting"), _("Value")), tuple(rows.items())
        )


def _calls(campaign: Campaign) -> Iterator[Block]:
    """What pgbench is, and exactly how it was called: of the first run of each set of options."""
    runs = campaign.runs.filter(state=Run.State.FINISHED).order_by("pk")
    run = runs.first()
    if run is None:
        return
    commands = run.commands.filter(
        step__regex=r"^(load|warm-up|pgbench)(-|$)"
    ).order_by("ordinal")
    calls = [shlex.join(map(str, command.argv)) for command in commands]
    if calls:
        yield Paragraph(
            _(
                "pgbench is the load generator that comes with PostgreSQL: each client sends the "
                "transactions of a script one after the other, and it reports how many a second "
                "were answered. Its calls, of the first run:"
            )
        )
        yield Listing(_("Calls of pgbench"), "\n".join(calls))


def _procedure(edition: Edition, edition_parts: Sequence[Part]) -> list[Block]:
    text = _(
        "All versions are measured in each round, so that what disturbs the machine disturbs all "
        "of them alike. %(anchor)s is the anchor: each edition measures it, and what it gains or "
        "loses from one edition to the next is the machine's."
    )
    blocks: list[Block] = [Paragraph(text % {"anchor": edition.observation.anchor})]
    for part_of_edition in edition_parts:
        blocks += [
            Paragraph(
                f"{_scenario(part_of_edition)}. {_(part_of_edition.campaign.scenario.description)}"
            ),
            conditions.kept(part_of_edition.campaign),
            Paragraph(conditions.order(part_of_edition.campaign)),
            *_calls(part_of_edition.campaign),
            *(
                [Bullets(tuple(part_of_edition.remarks))]
                if part_of_edition.remarks
                else []
            ),
        ]
    return blocks


def _results(part_of_edition: Part, draw: Draw) -> list[Block]:
    figure = draw(part_of_edition)
    caption = _("The line through versions, with its interval (95 %)")
    line = (
        [Picture(f"line-{part_of_edition.campaign.pk}", caption, figure)]
        if figure
        else []
    )
    result_blocks = results.results(part_of_edition.campaign, most_metrics=1)
    # Each campaign has a picture of its own file.
    named_blocks = [
        replace(block, name=f"{block.name}-{part_of_edition.campaign.pk}")
        if isinstance(block, Picture)
        else block
        for block in (
            *result_blocks,
            *results.verdicts(part_of_edition.campaign, subject=STEPS),
        )
    ]
    return [*line, *named_blocks]


def _causes(edition_parts: Sequence[Part]) -> list[Block]:
    """What ablations prove; nothing where none was measured."""
    causes = [
        (part_of_edition, explanations(part_of_edition.campaign))
        for part_of_edition in edition_parts
    ]
    return [
        block
        for part_of_edition, blocks in causes
        if blocks
        for block in (Paragraph(_scenario(part_of_edition)), *blocks)
    ]


def _against(again: Iterable[Again]) -> Iterator[Block]:
    for answer_of_design in again:
        yield Paragraph(answer_of_design.sentence)
        yield from (Paragraph(remark) for remark in answer_of_design.remarks)
        here, other_name = answer_of_design.names
        heads = (
            _("Version"),
            f"{here} : {other_name}",
            other_name,
            here,
            _("Change"),
            _("interval (95 %)"),
            _("Verdict"),
        )
        rows = tuple(
            (
                f"{version_answer.version} : {answer_of_design.anchor}",
                factor(version_answer.direct.ratio),
                factor(version_answer.before.ratio),
                factor(version_answer.now.ratio),
                factor(version_answer.change.ratio),
                f"{factor(version_answer.change.low)} – {factor(version_answer.change.high)}"
                if version_answer.change.low
                else "–",
                version_answer.word,
            )
            for version_answer in answer_of_design.others
        )
        if rows:
            caption = _("Versions against the anchor in both editions")
            yield Table(caption, heads, rows, frozenset((1, 2, 3, 4, 5)))


def _anchors(edition: Edition) -> Iterator[Block]:
    text = _("The anchor %(anchor)s from edition to edition: %(scenario)s")
    for chart_number, (scenario, figure) in enumerate(anchors.line(edition)):
        values = {"anchor": edition.observation.anchor, "scenario": scenario}
        yield Picture(f"anchor-{chart_number}", text % values, figure)


def _doubts(edition_parts: Sequence[Part]) -> list[Block]:
    """Each condition with runs that its certificate doubts or that are left out, and the reason."""
    doubted = [(part, doubts.list_doubts(part.campaign)) for part in edition_parts]
    number = sum(len(doubt.runs) for _part, of_part in doubted for doubt in of_part)
    total = sum(part_of_edition.progress.total for part_of_edition in edition_parts)
    text = _(
        "%(count)d of %(total)d runs are doubtful or invalid; invalid runs do not count."
    )
    blocks: list[Block] = [Paragraph(text % {"count": number, "total": total})]
    blocks += [
        Paragraph(f"{_scenario(part)}: {sentence}")
        for part, _of_part in doubted
        for sentence in doubts.explain_neighbours(part.campaign)
    ]
    for part_of_edition, of_part in doubted:
        if of_part:
            heads = (
                _("Condition"),
                _("Judgement"),
                _("Runs"),
                _("Reason, of the first of them"),
            )
            rows = tuple(
                (
                    doubt.condition,
                    doubt.judgement,
                    ", ".join(map(str, doubt.runs)),
                    doubt.reason,
                )
                for doubt in of_part
            )
            blocks.append(
                Table(
                    f"{_('Doubtful runs')}: {_scenario(part_of_edition)}", heads, rows
                )
            )
    return blocks


def _discussed(answer: EditionAnswer) -> Iterator[Block]:
    """What ablations say of each step, with the figures that it rests on, and what nobody asked."""
    for part in answer.parts:
        causes = [
            " ".join((cause.sentence, *cause.ablation.notes)) for cause in part.causes
        ]
        if causes:
            yield Paragraph(_("%(scenario)s:") % {"scenario": part.scenario})
            yield Bullets(tuple(causes))
    questions = tuple(
        f"{part.scenario}: {question}"
        for part in answer.parts
        for question in part.open_questions
    )
    if questions:
        yield Paragraph(
            _("Open questions: of these proven steps no cause has been tried.")
        )
        yield Bullets(questions)


def _conclusion(edition: Edition, answer: EditionAnswer) -> list[Block]:
    """People's words; before they write, the sentences of each step, by what was measured."""
    if edition.conclusion:
        return _written(edition.conclusion)
    return [
        block
        for part in answer.parts
        if part.sentences
        for block in (
            Paragraph(_("%(scenario)s:") % {"scenario": part.scenario}),
            Bullets(part.sentences),
        )
    ]


def _written(text: str) -> list[Block]:
    return [Paragraph(text)] if text else []


def _data(edition_parts: Sequence[Part], address: str) -> list[Block]:
    runs = Run.objects.filter(
        campaign__in=[part_of_edition.campaign for part_of_edition in edition_parts],
        state="finished",
    )
    text = _(
        "Each of the %(number)d runs with its certificate and commands: %(address)s"
    )
    return [Paragraph(text % {"number": runs.count(), "address": address})]


def _commands(edition_parts: Sequence[Part], address: str) -> list[Block]:
    """What one run of each scenario executed: cluster, data, warming up, load."""
    return [
        replace(listing, caption=f"{_scenario(part_of_edition)}: {listing.caption}")
        for part_of_edition in edition_parts
        for listing in recorded_commands.first_run(part_of_edition.campaign, address)
    ]


def _scenario(part_of_edition: Part) -> str:
    return str(_(part_of_edition.campaign.scenario.title))


def _numbered(sections: Sequence[tuple[str, Sequence[Block]]]) -> Iterator[Section]:
    numbers: Counter[type[Block]] = Counter()
    names = {Picture: _("Figure %(number)d"), Table: _("Table %(number)d")}
    for number, (title, blocks) in enumerate(sections, start=1):
        numbered_blocks: list[Block] = []
        for block in blocks:
            if isinstance(block, Picture | Table):
                numbers[type(block)] += 1
                name = names[type(block)] % {"number": numbers[type(block)]}
                numbered_blocks.append(
                    replace(
                        block, caption=f"{name}: {block.caption}".removesuffix(": ")
                    )
                )
            else:
                numbered_blocks.append(block)
        yield Section(f"{number}. {title}", tuple(numbered_blocks))
