"""Help: what the words mean, and where to begin."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs.access import addresses
from runs.home.selectors.questions import site_questions
from runs.shared.glossary import TERMS


@addresses.page("help")
def help_page(request: HttpRequest) -> HttpResponse:
    """The terms, the first steps of each kind of reader, and questions about this site."""
    questions = [
        (question, question.links_for(request.user)) for question in site_questions()
    ]
    context = {"terms": TERMS, "questions": questions}
    return render(request, "home/help.html", context)
