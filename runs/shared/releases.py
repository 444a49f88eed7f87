"""Whether the results database is looked after by a newer release than this process is of.

A worker of an older one would execute plans of the newer one by its own rules: it takes nothing.
"""

from django.db.models import Exists, Q
from django.utils.translation import gettext as _

from benchlab.release import own_release, release_in_words
from runs.models import Instance


def note() -> None:
    """Say which release looks after the results database; one of an older release says nothing."""
    Instance.objects.filter(pk=1, release__lt=own_release()).update(
        release=own_release()
    )


def newer() -> str:
    """The release of the results database if it is newer than this process; empty if not."""
    newer_releases = Instance.objects.filter(pk=1, release__gt=own_release())
    return newer_releases.values_list("release", flat=True).first() or ""


def is_current() -> Q:
    """The condition of a query that finds nothing for a process of an older release."""
    return ~Q(Exists(Instance.objects.filter(pk=1, release__gt=own_release())))


def why_old(release: str) -> str:
    """What a worker says that is older than the results database."""
    text = _("It is of release %(own)s, and this BenchLab of %(newer)s: update it.")
    return text % {
        "own": release_in_words(own_release()),
        "newer": release_in_words(release),
    }
