"""Help: what the words mean, and where to begin."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs.access import addresses
from runs.shared.glossary import TERMS


@addresses.page("help")
def help_page(request: HttpRequest) -> HttpResponse:
    """The terms, and the first steps of each kind of reader."""
    return render(request, "home/help.html", {"terms": TERMS})
