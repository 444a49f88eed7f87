"""The badge of a campaign: the verdict of its newest revision as a small picture."""

import unicodedata

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import conditional_page

from runs.access import addresses
from runs.access.selectors import projects
from runs.cells.selectors import regressions
from runs.compare.selectors import answers
from runs.models import Campaign

SECONDS = 300
COLOURS = {"slower": "#b3261e", "faster": "#1b7f3b", "same": "#1b7f3b"}
UNDECIDED = "#6b7078"
LABEL = "BenchLab"
# Pixels of a character at 11 px, and the room at both ends.
WIDTH, PADDING = 6.6, 12


@addresses.page("campaign-badge")
@conditional_page  # caches keep it for some minutes, and ask again with its content's hash
def campaign_badge(request: HttpRequest, slug: str) -> HttpResponse:
    """The verdict of the newest revision against the one before, or against `base`.

    Without a `base` also the regressions that nobody has decided about: the branch is not well
    while one is open, whatever its newest commit did.
    """
    campaigns = projects.visible(
        Campaign.objects.select_related("project"), to=request.user
    )
    campaign = get_object_or_404(campaigns, slug=slug)
    answer = answers.answer_newest(
        campaign,
        base=request.GET.get("base", ""),
        metric=request.GET.get("metric", ""),
        reader=request.user,
    )
    text = answer.short if answer else _("no revisions")
    tone = answer.tone if answer else ""
    number = 0 if request.GET.get("base") else regressions.open_regressions(campaign)
    if number and tone != "slower":
        tone = "slower"
        number_open = ngettext(
            "%(number)d regression open", "%(number)d regressions open", number
        )
        text = f"{text} · {number_open % {'number': number}}"
    left_width, right = _width(LABEL), _width(text)
    context = {
        "label": LABEL,
        "text": text,
        "left": left_width,
        "width": left_width + right,
        "label_at": left_width / 2,
        "text_at": left_width + right / 2,
        "colour": COLOURS.get(tone, UNDECIDED),
    }
    page = render(request, "compare/badge.svg", context, content_type="image/svg+xml")
    # What a member sees, such as the verdict against a private base, is not for everybody's cache.
    who = "private" if request.user.is_authenticated else "public"
    patch_cache_control(page, max_age=SECONDS, **{who: True})
    return page


def _width(text: str) -> float:
    """About as wide as the text is drawn; a Japanese character takes the room of two."""
    places = sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
    return round(places * WIDTH + PADDING)
