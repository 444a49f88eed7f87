"""The line of versions as a picture with an address of its own."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.archive.views import versions
from runs.charts import framed
from runs.shared import chart_files, embedding
from runs.shared.chart_files import ChartFile


@addresses.page("version-chart")
@embedding.tagged
def version_chart(request: HttpRequest, form: str) -> HttpResponseBase:
    """The line of the page, by the same words of the address."""
    question = versions.question(request)

    def make() -> ChartFile | None:
        context = versions.context(
            question.used,
            clients=question.clients,
            base=question.base,
            by=question.by,
            ends=question.ends,
        )
        tiles = [
            framed.tile(figure, label=name)
            for name, figure in context["facets"] or [("", context["figure"])]
            if figure is not None
        ]
        if not tiles:
            return None
        themes = dict(context["themes"])
        return ChartFile(
            tiles,
            title=_("PostgreSQL from version to version: %(theme)s")
            % {"theme": themes[context["theme"]]},
            texts=[context["answer"].sentence],
            data="",
            path="/versions/",
        )

    return chart_files.answer(
        request, form, ("versions", question), question.version, make
    )
