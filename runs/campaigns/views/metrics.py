"""The metrics of a project, which its maintainers correct."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import Right
from runs.campaigns.services import metric_corrections
from runs.models import Metric
from runs.shared import pages


class MetricForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """What a project says of a metric."""

    class Meta:
        model = Metric
        fields = ("unit", "direction", "title")
        labels = {
            "unit": _("Unit"),
            "direction": _("Direction"),
            "title": _("Title"),
        }


@addresses.page("project-metrics", Right.METRICS)
def project_metrics(request: HttpRequest, slug: str) -> HttpResponse:
    """The metrics that belong to a project."""
    project = get_object_or_404(projects.readable(request.user), slug=slug)
    page = pages.page(project.metrics.all(), request.GET, by="name")
    context = {"project": project, "page": page, "rows": page.rows}
    return render(request, "access/projects/metrics.html", context)


@addresses.form("project-metric", Right.METRICS)
def project_metric(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Correct one of them."""
    project = get_object_or_404(projects.readable(request.user), slug=slug)
    metric = get_object_or_404(project.metrics, name=name)
    form = MetricForm(request.POST or None, instance=metric)
    if request.method == "POST" and form.is_valid():
        with pages.faults_of(form):
            metric_corrections.correct(metric=metric, **form.cleaned_data)
            messages.success(request, _("The metric was corrected."))
            return redirect("project-metrics", slug=slug)
    context = {"project": project, "metric": metric, "form": form}
    return render(request, "access/projects/metric.html", context)
