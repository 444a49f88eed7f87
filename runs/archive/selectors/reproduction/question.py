"""Whether what would run still asks what was printed: each factor of the question compared.

A design may have another size, other versions and fewer levels, and asks the same. It does not
where a factor that was varied falls to one level, or has none of the levels that were its point:
what would run stands beside the print and looks like an answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.archive.selectors.reproduction import printed
from runs.archive.selectors.reproduction.printed import BLOCK_SIZE, VERSION
from runs.cells.selectors import versions
from runs.cells.selectors.level_names import Factors, factors
from runs.models import Campaign, Installation, Server
from runs.scenarios.definition import AnyFactor, ChoiceFactor, Level, Place, Scenario
from runs.shared.formats import listed

# Their levels follow the machine: another size asks the same, as long as there are two.
OF_SIZE = frozenset(
    {"clients", "cores", "scale", "shared_buffers", "months", "workers"}
)
USUAL_BLOCK = 8192


@dataclass(frozen=True)
class LostFactor:
    """A factor of the printed question that what would run cannot ask.

    `printed` and `runs` are its levels in the reader's words, `needed` is what would ask it.
    """

    code: str
    name: str
    printed: tuple[str, ...]
    runs: tuple[str, ...]
    needed: str

    @property
    def sentence(self) -> str:
        """What is lost, in one sentence."""
        values = {
            "name": self.name,
            "printed": listed(list(self.printed)),
            "runs": listed(list(self.runs)),
        }
        if not self.runs:
            return _("%(name)s is not varied here; printed are %(printed)s.") % values
        return _("%(name)s: of %(printed)s there is only %(runs)s.") % values


@dataclass(frozen=True)
class Asked:
    """What would run, in the terms of its scenario.

    `has_further` says whether further clusters have a server of their own.
    """

    scenario: Scenario
    levels: Mapping[str, Sequence[Any]]
    installations: Sequence[Installation]
    servers: Sequence[Server]
    has_further: bool = False


def lost_factors(
    published: Campaign,
    asked: Asked,
    published_levels: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[LostFactor, ...]:
    """The factors of a published question that this does not ask. One query without the levels."""
    question = _Question(
        published, asked, published_levels or printed.levels(published)
    )
    return tuple(question.lost())


@dataclass(frozen=True)
class _Question:
    """A printed question beside what would run."""

    published: Campaign
    asked: Asked
    printed_levels: Mapping[str, Sequence[Any]]

    @property
    def place(self) -> Place:
        """How the scenario expresses it."""
        return self.asked.scenario.places.get(self.published.slug, Place())

    @property
    def words(self) -> Factors:
        """The publication's names of factors and levels."""
        return factors(self.published.published.columns)

    def lost(self) -> Iterator[LostFactor]:
        """Each of them."""
        yield from self._find_lost_versions()
        yield from self._find_lost_block_sizes()
        for factor in self.asked.scenario.factors:
            yield from self._find_lost_factor(factor)
        yield from self._find_lost_machines()

    def _find_lost_versions(self) -> Iterator[LostFactor]:
        """Others than the printed ones ask the same of others; one alone compares nothing."""
        theirs = [str(version) for version in self.printed_levels.get(VERSION, ())]
        majors = {versions.major(version) for version in theirs} - {""}
        here = [installation.version for installation in self.asked.installations]
        if len(majors) > 1 and len({versions.major(version) for version in here}) < 2:
            needed = _("two of these versions, or two others, installed on the server")
            name = self.words.title(VERSION)
            yield LostFactor(
                VERSION, name, tuple(theirs), tuple(dict.fromkeys(here)), needed
            )

    def _find_lost_block_sizes(self) -> Iterator[LostFactor]:
        theirs = [int(size) for size in self.printed_levels.get(BLOCK_SIZE, ())]
        here = sorted(
            {
                (installation.block_size or USUAL_BLOCK) // 1024
                for installation in self.asked.installations
            }
        )
        common = set(theirs) & set(here)
        if not theirs or len(common) >= min(2, len(theirs)):
            return
        missing = listed([f"{size} kB" for size in theirs if size not in here])
        needed = _(
            "PostgreSQL built with blocks of %(sizes)s (configure --with-blocksize), in a folder "
            "of the server"
        )
        yield LostFactor(
            BLOCK_SIZE,
            self.words.title(BLOCK_SIZE),
            tuple(f"{size} kB" for size in theirs),
            tuple(f"{size} kB" for size in here),
            needed % {"sizes": missing},
        )

    def _find_lost_factor(self, factor: AnyFactor) -> Iterator[LostFactor]:
        scenario = self.asked.scenario
        theirs = printed.list_levels(
            self.published, self.place, factor.name, self.printed_levels
        )
        wanted = self._wanted(factor, theirs)
        here = list(self.asked.levels.get(factor.name, ()))
        needed = ""
        if (
            len(wanted) > 1
            and factor.name in scenario.elsewhere
            and not self.asked.has_further
        ):
            # Whatever the levels say, they are on one device.
            here, needed = here[:1], _(scenario.elsewhere[factor.name])
        elif not self._is_lost(factor, wanted, here):
            return
        yield LostFactor(
            factor.name,
            _(factor.title),
            tuple(self._printed_level(factor, level) for level in theirs or wanted),
            tuple(_level_of(factor, level) for level in here),
            needed or self._needed(factor, wanted, here),
        )

    def _wanted(self, factor: AnyFactor, theirs: Sequence[Level]) -> list[Level]:
        """The printed levels in the scenario's terms."""
        return list(self.place.levels.get(factor.name, theirs))

    def _is_lost(
        self, factor: AnyFactor, wanted: Sequence[Level], here: Sequence[Level]
    ) -> bool:
        asked_levels, levels_here = set(map(str, wanted)), set(map(str, here))
        if len(asked_levels) > 1 and len(levels_here) < 2:
            return True
        is_of_size = factor.name in OF_SIZE
        accepted = {str(level) for level in wanted if factor.accepts(level)}
        return bool(accepted) and not is_of_size and not accepted & levels_here

    def _printed_level(self, factor: AnyFactor, level: Level) -> str:
        text = self.words.level(factor.name, level)
        return _level_of(factor, level) if text == str(level) else text

    def _needed(
        self, factor: AnyFactor, wanted: Sequence[Level], here: Sequence[Level]
    ) -> str:
        extensions = [
            extension.name
            for extension in self.asked.scenario.extensions
            if extension.factor == factor.name
            and extension.level in wanted
            and extension.level not in here
        ]
        if extensions:
            text = _(
                "the extension %(names)s, installed with PostgreSQL %(versions)s on the server"
            )
            names = list(dict.fromkeys(extensions))
            in_order = list(
                dict.fromkeys(
                    installation.version for installation in self.asked.installations
                )
            )
            return text % {"names": listed(names), "versions": listed(in_order)}
        values = {"levels": listed([_level_of(factor, level) for level in wanted])}
        if factor.name in OF_SIZE:
            return _("a larger server: at least two of %(levels)s") % values
        return _("at least two of %(levels)s, chosen under “What varies”") % values

    def _find_lost_machines(self) -> Iterator[LostFactor]:
        """What the print varies by having several machines: their systems, or their devices."""
        own_names = {factor.name for factor in self.asked.scenario.factors}
        for name, needed in self.asked.scenario.elsewhere.items():
            levels = self.printed_levels.get(name, ())
            if name in own_names or len(levels) < 2:
                continue
            here = self._here(name)
            if len(here) < 2:
                yield LostFactor(
                    name,
                    self.words.title(name),
                    tuple(self.words.level(name, level) for level in levels),
                    here,
                    _(needed),
                )

    def _here(self, name: str) -> tuple[str, ...]:
        if name == "os":
            names = (
                server.environment.os_name if server.environment else ""
                for server in self.asked.servers
            )
            families = (
                "Windows" if "windows" in text.lower() else "Linux" for text in names
            )
            return tuple(dict.fromkeys(families))
        return tuple(server.name for server in self.asked.servers)


def _level_of(factor: AnyFactor, level: Level) -> str:
    """In the scenario's words."""
    if isinstance(factor, ChoiceFactor) and str(level) in factor.choices:
        return _(factor.choices[str(level)])
    return str(level)
