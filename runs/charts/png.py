"""Pictures as PNG: resvg draws the SVG of this project, with the fonts of the machine.

Without a font it would draw no text at all, and leave out what a font does not have: then there is
no picture, and the reason says which package to install.
"""

import re
from functools import lru_cache

# A picture of 792 pixels has twice as many, as screens do.
ZOOM = 2
# The first that is there writes; resvg asks all others for what it lacks.
FAMILIES = ("Noto Sans", "DejaVu Sans", "Liberation Sans", "Arial", "Helvetica")
# Before these where there is Japanese: resvg may find one whose Latin letters are all as wide.
JAPANESE_FAMILIES = (
    "Noto Sans CJK JP",
    "Noto Sans JP",
    "VL PGothic",
    "IPAexGothic",
    "IPAPGothic",
    "Hiragino Sans",
)
# Two letters of a script that look different where a font has them.
LATIN, JAPANESE = "xi", "日本"
_IS_JAPANESE = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]")


class NoFontError(Exception):
    """This machine cannot write the picture's text; the message says what to install."""


def png(svg: str) -> bytes:
    """The picture in pixels. Raises NoFontError, and ValueError for what is no SVG."""
    # Its library of 3 MB is for the processes that are asked for such pictures.
    import resvg_py  # noqa: PLC0415

    family = _family(FAMILIES, LATIN)
    if not family:
        raise NoFontError(
            "This machine has no font: install one, as in apt install fonts-dejavu-core."
        )
    if _IS_JAPANESE.search(svg):
        family = _family((*JAPANESE_FAMILIES, *FAMILIES), LATIN + JAPANESE)
    if not family:
        raise NoFontError(
            "This machine has no font for Japanese: apt install fonts-vlgothic."
        )
    drawn: bytes = resvg_py.svg_to_bytes(
        svg_string=svg, sans_serif_family=family, zoom=ZOOM
    )
    return drawn


def _family(families: tuple[str, ...], letters: str) -> str:
    return next((family for family in families if _writes(family, letters)), "")


@lru_cache
def _writes(family: str, letters: str) -> bool:
    """Whether these letters are drawn, and differ."""
    import resvg_py  # noqa: PLC0415

    pictures = {
        resvg_py.svg_to_bytes(
            svg_string='<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" '
            f'font-family="sans-serif"><text x="2" y="15">{letter}</text></svg>',
            sans_serif_family=family,
        )
        for letter in ("", *letters)
    }
    return len(pictures) == 1 + len(letters)
