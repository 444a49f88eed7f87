"""How fast a server was as a picture with an address of its own."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.charts import framed
from runs.models import Server
from runs.queue.selectors import machine_speeds
from runs.servers.selectors import servers as server_selectors
from runs.servers.views import servers as server_page
from runs.shared import chart_files, embedding
from runs.shared.chart_files import ChartFile
from runs.shared.pages import or_404


@addresses.page("server-chart")
@embedding.tagged
def server_chart(request: HttpRequest, slug: str, form: str) -> HttpResponseBase:
    """The speed of the machine before and after its last runs, of those that the reader may see."""
    with or_404(Server.DoesNotExist):
        server = server_selectors.detail(slug, to=request.user).server

    def make() -> ChartFile | None:
        moments = machine_speeds.history(server, to=request.user)
        figure = server_page.speed_figure(moments)
        if figure is None:
            return None
        title = _("How fast the machine was")
        return ChartFile(
            [framed.tile(figure)],
            title=f"{server.name}: {title}",
            texts=[_("a piece of fixed work before and after each run")],
            data=chart_files.dates_text(moments[0].at.date(), moments[-1].at.date()),
            path=f"/servers/{server.slug}/",
        )

    return chart_files.answer(request, form, None, None, make)
