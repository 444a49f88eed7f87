"""Who draws which conclusions from a published table, kept strictly apart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from runs.models import PublishedTable
from runs.shared.formats import spoken


@dataclass(frozen=True)
class Conclusion:
    """A conclusion in the reader's language, with its place and its original wording."""

    text: str
    section: str
    quote: str

    @property
    def sentence(self) -> str:
        """The text with its section, and the publication's own words where they may be printed."""
        if not self.section:
            return self.text
        if not self.quote:
            return _("%(text)s (section %(section)s)") % vars(self)
        return _("%(text)s (section %(section)s: “%(quote)s”)") % vars(self)


def printed(findings: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The conclusions that the publication itself draws, without those of BenchLab."""
    return [
        finding
        for finding in findings
        if finding.get("by", "publication") == "publication"
    ]


def computed(findings: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The conclusions that BenchLab computes from the printed figures."""
    return [finding for finding in findings if finding.get("by") == "benchlab"]


def grouped(table: PublishedTable) -> Iterator[tuple[str, list[Conclusion]]]:
    """A title and the conclusions of each party that draws some, the publication first."""
    titles = {
        "publication": _("The publication concludes"),
        "benchlab": _("BenchLab computes from the printed figures"),
        "disagree": _("Publication and BenchLab disagree"),
    }
    for party, title in titles.items():
        conclusions_of_party = [
            Conclusion(
                spoken(finding), finding.get("section", ""), finding.get("quote", "")
            )
            for finding in table.findings
            if finding.get("by", "publication") == party
        ]
        if conclusions_of_party:
            yield title, conclusions_of_party
