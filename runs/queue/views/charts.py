"""The charts of a run as pictures with addresses of their own."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.cells.selectors import versions
from runs.charts import framed
from runs.charts.figure import Figure
from runs.execution.machine.monitors import is_monitored
from runs.models import Run
from runs.queue.selectors import runs
from runs.queue.views import evidence, run_page
from runs.queue.views import runs as series_page
from runs.shared import chart_files, embedding
from runs.shared.chart_files import ChartFile
from runs.shared.pages import or_404

MACHINES = "machines"


@dataclass(frozen=True)
class _Chart:
    title: str
    figure: Figure


@addresses.page("run-chart")
@embedding.tagged
def run_chart(request: HttpRequest, run_id: int, form: str) -> HttpResponseBase:
    """The run over its seconds, `from` to `to`; `chart` is machines or a table of evidence."""
    with or_404(Run.DoesNotExist):
        run = runs.detail(run_id, to=request.user)
    # Nothing of it is kept here: it grows while the run goes on.
    return chart_files.answer(request, form, None, None, lambda: _drawn(request, run))


def _drawn(request: HttpRequest, run: Run) -> ChartFile | None:
    chart = _chart(request, run)
    if chart is None:
        return None
    levels = (f"{name} {level}" for name, level in run_page.levels(run))
    begun, ended = (
        moment.date() if moment else None
        for moment in (run.started_at, run.finished_at)
    )
    number = _("Run %(number)s") % {"number": run.pk}
    return ChartFile(
        [framed.tile(chart.figure)],
        title=f"{number}: {chart.title}",
        texts=[run.campaign.title, " · ".join(levels)],
        data=chart_files.dates_text(begun, ended),
        path=f"/runs/{run.pk}/",
    )


def _chart(request: HttpRequest, run: Run) -> _Chart | None:
    name = request.GET.get("chart", "")
    if not name:
        run_charts = series_page.shown_series(request, run)
        return _Chart(_("Over time"), run_charts.figure) if run_charts else None
    if name == MACHINES:
        machines = [series for series in run.series.all() if is_monitored(series.name)]
        major = versions.major(run.server_version or run.cell.version)
        figure = run_page.machines_figure(machines, major=major)
        return _Chart(_("The machines during the run"), figure) if figure else None
    for table in evidence.tables(run.artifacts.all()):
        if table["name"] == name and table["figure"]:
            return _Chart(str(table["title"]), table["figure"])
    return None
