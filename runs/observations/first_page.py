"""The card of the first page that leads from the first start's piece of the line to all of it."""

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from runs.observations.selectors import editions
from runs.observations.services import observations

# Twelve versions, reading and updating, take some 25 minutes.
SECONDS_OF_ALL = 6


def way_on(request: HttpRequest, reader: User | AnonymousUser) -> SafeString:
    """For who has logged in, while nothing else is observed."""
    listed = list(editions.listed(to=reader)[:2]) if isinstance(reader, User) else []
    if len(listed) != 1 or not listed[0].versions:
        return SafeString()
    (observation,) = listed
    plan = observations.proposed(observation.server, seconds=SECONDS_OF_ALL)
    majors = observations.majors_of(plan)
    has_more = len(majors) > len(observation.versions)
    seconds = (
        sum(estimate.seconds for estimate in observations.estimates(plan))
        if has_more
        else 0
    )
    context = {
        "observation": observation,
        "majors": majors,
        "run_seconds": SECONDS_OF_ALL,
        "seconds": seconds,
        "user": reader,
    }
    return render_to_string("observations/first_page.html", context, request=request)
