"""A chart as a file at an address of its own: SVG or PNG, with title, date and source in it."""

import base64
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from runs.charts import framed
from runs.charts.framed import Tile
from runs.charts.png import NoFontError, png
from runs.shared import caching, embedding

TYPES = {"svg": "image/svg+xml", "png": "image/png"}


@dataclass(frozen=True)
class ChartFile:
    """What a picture shows. `data` says of when its figures are, `path` is the page it is of."""

    tiles: Sequence[Tile]
    title: str
    texts: Sequence[str]
    data: str
    path: str
    style: str = ""


def answer(
    request: HttpRequest,
    form: str,
    key: Hashable,
    version: str | None,
    make: Callable[[], ChartFile | None],
) -> HttpResponseBase:
    """The picture as a file; kept for its key and version, as pages are.

    `form` is svg or png. Raises Http404 for another one, and where there is no chart. 501 where
    this machine has no font to write it with.
    """
    if form not in TYPES:
        raise Http404(form)
    site = embedding.site(request)

    def written() -> str:
        chart = make()
        if chart is None:
            return ""
        notes = [note for note in (chart.data, f"{site}{chart.path}") if note]
        svg = framed.framed(
            chart.tiles,
            title=chart.title,
            texts=chart.texts,
            notes=[" · ".join(("BenchLab", *notes))],
            style=chart.style,
        )
        return svg if form == "svg" else base64.b64encode(png(svg)).decode()

    try:
        text = caching.answer(("chart", site, form, key), version, written)
    except NoFontError as error:
        return HttpResponse(
            str(error),
            status=HTTPStatus.NOT_IMPLEMENTED,
            content_type="text/plain; charset=utf-8",
        )
    if not text:
        raise Http404(_("There is no chart."))
    content = text.encode() if form == "svg" else base64.b64decode(text)
    return embedding.framed(request, HttpResponse(content, content_type=TYPES[form]))


def dates_text(first: date | None, last: date | None) -> str:
    """Of when the figures are: a day, or from one to another; empty where unknown."""
    days = list(dict.fromkeys(f"{day:%Y-%m-%d}" for day in (first, last) if day))
    return say_dates(" – ".join(days))


def say_dates(dates: str) -> str:
    """The same of days or years in words."""
    return _("figures of %(dates)s") % {"dates": dates} if dates else ""
