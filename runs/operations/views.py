"""Pages of operations: workers and their hosts, and who uses the servers of a copy."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.models import Instance
from runs.operations.selectors import workers
from runs.operations.services import copies
from runs.shared import pages

GONE, LEFT = "gone", "left"


@addresses.form("take-over", Right.SERVERS)
def take_over(request: HttpRequest) -> HttpResponse:
    """Each server with the question whether another BenchLab uses it."""
    servers = copies.servers_to_answer()
    if request.method == "POST":
        answers = {
            server.slug: request.POST.get(f"server-{server.slug}") for server in servers
        }
        with pages.refusals(request):
            copies.take_over(
                gone=[slug for slug, answer in answers.items() if answer == GONE],
                left=[slug for slug, answer in answers.items() if answer == LEFT],
            )
            messages.success(request, _("This BenchLab goes on."))
            return redirect("home")
    instance = Instance.objects.filter(pk=1).exclude(held_since=None).first()
    context = {"servers": servers, "instance": instance}
    return render(request, "operations/take_over.html", context)


@addresses.page("worker-list", Right.OWN)
def worker_list(request: HttpRequest) -> HttpResponse:
    """Each worker with its host, release and health; and the hosts that joined."""
    return render(request, "operations/workers.html", vars(workers.page()))
