"""Flame graphs as SVG: whole ones to keep, and views that are zoomed, searched or compared.

A line of folded stacks is "OUTER;...;INNER N"; see https://www.brendangregg.com/flamegraphs.html.
The width of a box is its share of the samples; a box is called by the one below it. Tooltips show
each box's samples.

Each box is a link that zooms to it, so the picture works without JavaScript. In a difference
the widths are those of the second profile; a box is red if its share has grown, blue if it has
become smaller, and grey if chance explains the difference.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from runs.charts.stacks import Change, Frame, change, tree_of

WIDTH = 1200
ROW = 17
MARGIN = 10
HEAD = 44
LETTER = 6.6
# Boxes narrower than this (in pixels) are left out, with everything above them.
NARROWEST = 0.6
KERNEL = "_[k]"
# What XML 1.0 cannot contain.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(folded: str, *, title: str) -> str:
    """The graph with `title` above it. Lines that are not folded stacks are left out.

    Raises ValueError if there is no sample at all.
    """
    root = tree_of(folded)
    if not root.samples:
        raise ValueError("there are no folded stacks")
    drawing = _Drawing(root, root, None, "", None)
    height, drawn = _stacked(drawing, None, (), HEAD)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" font-family="monospace" font-size="11"'
        f" aria-label={quoteattr(clean(title))}>"
    )
    return "\n".join(
        [
            head,
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            (
                f'<text x="{WIDTH / 2:g}" y="26" text-anchor="middle" font-size="15" '
                f'font-family="sans-serif" fill="#121820">{escape(clean(title))}</text>'
            ),
            *drawn,
            "</svg>\n",
        ]
    )


def colour(name: str) -> str:
    """Always the same for a name: blue for the kernel, warm colours for everything else."""
    shade = zlib.crc32(name.encode(errors="replace"))
    hue, lightness = shade % 30, 68 + (shade >> 8) % 14
    if name == "all":
        return "hsl(210,10%,85%)"
    return (
        f"hsl({205 + hue // 2},70%,{lightness}%)"
        if KERNEL in name
        else f"hsl({20 + hue},85%,{lightness}%)"
    )


def clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


FOUND, CHANCE = "hsl(285,60%,72%)", "hsl(210,8%,86%)"
# Points of difference from which the colour has its full strength.
STRONGEST = 10.0
Zoom = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """The picture, the share of the samples (per cent) that the searched word is in, and the way
    from the root to the zoomed frame: (name, zoom) of each."""

    svg: str
    found: float | None
    way: Sequence[tuple[str, Zoom]]


@dataclass(frozen=True)
class _Box:
    """`left` in samples of the zoomed frame, `row` from the bottom."""

    frame: Frame
    before: Frame | None
    zoom: Zoom
    left: int
    row: int


@dataclass(frozen=True)
class _Drawing:
    whole: Frame
    top: Frame
    before: Frame | None
    search: str
    link: Callable[[Zoom], str] | None


def view(
    after: Frame,
    *,
    link: Callable[[Zoom], str],
    zoom: Zoom = (),
    search: str = "",
    before: Frame | None = None,
) -> View:
    """The picture of a profile, or with `before` of its difference to that one.

    `zoom` are the positions of the frames on the way, by their names' order; one that leads nowhere
    ends where it can. `link` gives the address of a zoom.
    """
    top, then, path = _zoomed(after, before, zoom)
    drawing = _Drawing(after, top, before, search.lower(), link)
    height, drawn = _stacked(drawing, then, path[-1][1], MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flames" viewBox="0 0 {WIDTH} {height}" '
        'font-family="monospace" font-size="11">'
    )
    found_share = _found(after, drawing.search) if search else None
    return View("\n".join([head, *drawn, "</svg>"]), found_share, path)


def _zoomed(
    after: Frame, before: Frame | None, zoom: Zoom
) -> tuple[Frame, Frame | None, list[tuple[str, Zoom]]]:
    frame, then = after, before
    places: list[tuple[str, Zoom]] = [(after.name, ())]
    for position in zoom:
        names = sorted(frame.called)
        if not 0 <= position < len(names):
            break
        frame = frame.called[names[position]]
        then = then.called.get(names[position]) if then else None
        places.append((frame.name, (*places[-1][1], position)))
    return frame, then, places


def _stacked(
    drawing: _Drawing, before: Frame | None, zoom: Zoom, above: int
) -> tuple[int, list[str]]:
    """The height of the picture with so much room above the boxes, and the boxes."""
    boxes = list(_boxes(drawing, before, zoom))
    height = above + (max(box.row for box in boxes) + 1) * ROW + MARGIN
    return height, [_drawn(box, drawing, height) for box in boxes]


def _boxes(drawing: _Drawing, before: Frame | None, zoom: Zoom) -> Iterator[_Box]:
    """Every box that is wide enough, with the functions of each in the order of their names."""
    narrowest = NARROWEST / (WIDTH - 2 * MARGIN) * drawing.top.samples
    waiting = [_Box(drawing.top, before, zoom, 0, 0)]
    while waiting:
        box = waiting.pop()
        yield box
        left_edge = box.left
        for position, name in enumerate(sorted(box.frame.called)):
            frame = box.frame.called[name]
            if frame.samples >= narrowest:
                then = box.before.called.get(name) if box.before else None
                waiting.append(
                    _Box(frame, then, (*box.zoom, position), left_edge, box.row + 1)
                )
            left_edge += frame.samples


def _is_found(frame: Frame, search: str) -> bool:
    return bool(search) and search in frame.name.lower()


def _found(root: Frame, search: str) -> float:
    """The percentage of samples with the word anywhere on their stacks."""
    samples, waiting = 0, [root]
    while waiting:
        frame = waiting.pop()
        if _is_found(frame, search):
            samples += frame.samples
        else:
            waiting += frame.called.values()
    return 100 * samples / max(root.samples, 1)


def _drawn(box: _Box, drawing: _Drawing, height: int) -> str:
    scale = (WIDTH - 2 * MARGIN) / max(drawing.top.samples, 1)
    x, width = MARGIN + box.left * scale, box.frame.samples * scale
    y = height - MARGIN - (box.row + 1) * ROW
    name = clean(box.frame.name)
    changed = _change(box, drawing)
    share = 100 * box.frame.samples / max(drawing.whole.samples, 1)
    sentence = f"{name}: {box.frame.samples:,} samples, {share:.2f} %"
    if changed is not None:
        sentence += f" ({changed.before:.2f} %, {changed.points:+.2f})"
    room = int((width - 6) / LETTER)
    label_text = name if len(name) <= room else f"{name[: max(room - 2, 0)]}.."
    label = (
        f'<text x="{x + 3:.1f}" y="{y + 12}" fill="#121820">{escape(label_text)}</text>'
    )
    begin, end = "<g>", "</g>"
    if drawing.link is not None:
        begin, end = f"<a href={quoteattr(drawing.link(box.zoom))}>", "</a>"
    return (
        f"{begin}<title>{escape(sentence)}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.4, 0.3):.1f}" height="{ROW - 1}" rx="1" '
        f'fill="{_fill(box, changed, drawing.search)}"/>{label if room >= 3 else ""}{end}'
    )


def _change(box: _Box, drawing: _Drawing) -> Change | None:
    if drawing.before is None:
        return None
    before = box.before.samples if box.before else 0
    return change(
        box.frame.name,
        before,
        drawing.before.samples,
        box.frame.samples,
        drawing.whole.samples,
    )


def _fill(box: _Box, changed: Change | None, search: str) -> str:
    if _is_found(box.frame, search):
        return FOUND
    if changed is None:
        return colour(box.frame.name)
    if not changed.is_sure:
        return CHANCE
    strength = min(1.0, abs(changed.points) / STRONGEST)
    return f"hsl({5 if changed.points > 0 else 215},80%,{90 - 28 * strength:.0f}%)"
