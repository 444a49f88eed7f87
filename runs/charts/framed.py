"""A picture that stands by itself: title, answer, the charts, and of when and from where it is.

It is shown where nothing around it says what it is: in a README, a wiki, a slide.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from runs.charts.figure import Figure, cut
from runs.charts.looks import PAPER
from runs.charts.svg import LETTER, render, text_width

PADDING = 16
TITLE_SIZE, TEXT_SIZE, NOTE_SIZE = 16, 13, 11
# Lines of the title and of each text; the page has all of them.
MOST_LINES = 3
LABEL_ROOM = 18
# What XML cannot have, however it is escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The letters of text_width are of 12 pixels.
_LETTER_SIZE = 12


@dataclass(frozen=True)
class Tile:
    """A chart in the picture: SVG of this size, and its name above it."""

    svg: str
    width: float
    height: float
    label: str = ""


@dataclass(frozen=True)
class _Text:
    """A line of text in its size and colour."""

    words: str
    size: int
    colour: str
    is_bold: bool = False


def tile(figure: Figure, *, label: str = "") -> Tile:
    """A figure as it is drawn on paper."""
    drawn = render(figure, look=PAPER)
    return Tile(drawn, PAPER.width, height_of(drawn), label)


def height_of(drawn: str) -> float:
    """Of a picture by `svg.render`."""
    match = re.search(r'height="([\d.]+)">', drawn)
    return float(match[1]) if match else PAPER.height


def framed(
    tiles: Sequence[Tile],
    *,
    title: str,
    texts: Sequence[str] = (),
    notes: Sequence[str] = (),
    style: str = "",
) -> str:
    """An SVG document on white; `style` is CSS for the charts. Foreign text is escaped."""
    rows = _rows(tiles)
    width = max(
        [PAPER.width, *(sum(tile.width for tile in row) for row in rows)],
    )
    room = width
    width += 2 * PADDING
    head = [
        *_lines(title, TITLE_SIZE, PAPER.ink, room, is_bold=True),
        *(line for text in texts for line in _lines(text, TEXT_SIZE, PAPER.ink, room)),
    ]
    foot = [
        line for note in notes for line in _lines(note, NOTE_SIZE, PAPER.soft, room)
    ]
    top, elements = _written(head, float(PADDING))
    for row in rows:
        top += 8
        elements += _drawn(row, top)
        top += _height(row)
    top, written = _written(foot, top + 8)
    height = top + PADDING
    label = quoteattr(title)
    document = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label={label}',
        f' font-family="sans-serif" font-size="12" fill={quoteattr(PAPER.soft)}',
        f' viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style>" if style else "",
        f'<rect width="{width:g}" height="{height:g}" fill="{PAPER.ground}"/>',
        *elements,
        *written,
        "</svg>\n",
    ]
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", "\n".join(document))


def _rows(tiles: Sequence[Tile]) -> list[list[Tile]]:
    """As many beside each other as have room in the usual width."""
    rows: list[list[Tile]] = []
    for tile in tiles:
        used = sum(beside.width for beside in rows[-1]) if rows else 0
        if rows and used + tile.width <= PAPER.width + 2 * PADDING:
            rows[-1].append(tile)
        else:
            rows.append([tile])
    return rows


def _height(row: Sequence[Tile]) -> float:
    return max(tile.height + (LABEL_ROOM if tile.label else 0) for tile in row)


def _drawn(row: Sequence[Tile], top: float) -> list[str]:
    left, elements = float(PADDING), []
    for tile in row:
        below = top
        if tile.label:
            most = int(tile.width / LETTER)
            elements.append(
                f'<text x="{left:.1f}" y="{top + 12:.1f}" fill="{PAPER.ink}">'
                f"{escape(cut(tile.label, most))}</text>"
            )
            below += LABEL_ROOM
        elements.append(
            f'<svg x="{left:.1f}" y="{below:.1f}" width="{tile.width:g}" '
            f'height="{tile.height:g}">{tile.svg}</svg>'
        )
        left += tile.width
    return elements


def _lines(
    text: str, size: int, colour: str, room: float, *, is_bold: bool = False
) -> Iterator[_Text]:
    lines = list(_wrapped(" ".join(text.split()), room * _LETTER_SIZE / size))
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} …"]
    for line in lines:
        yield _Text(line, size, colour, is_bold)


def _wrapped(text: str, room: float) -> Iterator[str]:
    """The text in lines that have room, at blanks where there are any."""
    rest = text
    while rest:
        end = len(rest)
        while end > 1 and text_width(rest[:end]) > room:
            blank = rest.rfind(" ", 0, end - 1)
            end = blank if blank > 0 else end - max(1, end // 8)
        yield rest[:end].rstrip()
        rest = rest[end:].lstrip()


def _written(lines: Sequence[_Text], top: float) -> tuple[float, list[str]]:
    """Where the next thing begins, and the lines as elements."""
    elements = []
    for line in lines:
        top += line.size + 5
        weight = ' font-weight="bold"' if line.is_bold else ""
        elements.append(
            f'<text x="{PADDING}" y="{top - 4:.1f}" font-size="{line.size}"{weight} '
            f"fill={quoteattr(line.colour)}>{escape(line.words)}</text>"
        )
    return top, elements
