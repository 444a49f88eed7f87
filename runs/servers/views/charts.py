"""How fast and how busy a server was as pictures with addresses of their own."""

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors.projects import Reader
from runs.charts import framed
from runs.charts.figure import Figure
from runs.models import Server
from runs.queue.selectors import machine_speeds
from runs.servers.selectors import servers
from runs.servers.views import servers as server_page
from runs.shared import chart_files, embedding
from runs.shared.chart_files import ChartFile
from runs.shared.pages import or_404

LOAD = "load"


@addresses.page("server-chart")
@embedding.tagged
def server_chart(request: HttpRequest, slug: str, form: str) -> HttpResponseBase:
    """The speed of the machine before and after its last runs, of those that the reader may see.

    `?chart=load`: what others took of it in the last days.
    """
    with or_404(Server.DoesNotExist):
        server = servers.detail(slug, to=request.user).server
    chart = load_chart if request.GET.get("chart") == LOAD else speed_chart
    return chart_files.answer(
        request, form, None, None, lambda: chart(server, request.user)
    )


def load_chart(server: Server, _reader: Reader) -> ChartFile | None:
    """By hour, as on its page."""
    hours = servers.hourly_loads(server)
    return _chart_file(
        server,
        server_page.load_figure(hours),
        _("What others took of it in the last days"),
        _("asked every ten minutes while no run had the machine"),
        [hour.begin for hour in hours],
    )


def speed_chart(server: Server, reader: Reader) -> ChartFile | None:
    """By run, as on its page."""
    moments = machine_speeds.history(server, to=reader)
    return _chart_file(
        server,
        server_page.speed_figure(moments),
        _("How fast the machine was"),
        _("a piece of fixed work before and after each run"),
        [moment.at for moment in moments],
    )


def _chart_file(
    server: Server,
    figure: Figure | None,
    title: str,
    text: str,
    times: Sequence[datetime],
) -> ChartFile | None:
    if figure is None:
        return None
    return ChartFile(
        [framed.tile(figure)],
        title=f"{server.name}: {title}",
        texts=[text],
        data=chart_files.dates_text(times[0].date(), times[-1].date()),
        path=f"/servers/{server.slug}/",
    )
