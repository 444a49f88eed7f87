"""What a host needs to work for a BenchLab that it has joined: each thing is tried once."""

from collections.abc import Iterator

from django.conf import settings
from django.utils.translation import gettext as _

from benchlab import bucket
from benchlab.release import own_release, release_in_words
from runs.execution.errors import TargetProblem
from runs.models import Server, WorkerHost
from runs.operations.selectors import health_checks, sites
from runs.operations.selectors.health_checks import FAILED, OK, WARNING, Outcome
from runs.operations.services import doctor, hosts
from runs.servers.services import logins
from runs.shared import releases


def examine() -> Iterator[Outcome]:
    """The results, one by one; what needs the database is left out where it does not answer."""
    database = health_checks.database()
    yield database
    yield health_checks.redis()
    yield doctor.clock()
    if database.status == FAILED:
        return
    yield _release()
    yield health_checks.encryption_key()
    yield doctor.files_in_bucket() if bucket.is_set() else _folder()
    yield _server()


def _release() -> Outcome:
    if newer := releases.newer():
        return Outcome("release", FAILED, releases.why_old(newer))
    text = _("It is of release %(release)s, as the first host.")
    return Outcome("release", OK, text % {"release": release_in_words(own_release())})


def _folder() -> Outcome:
    """Whether the folder of files is the one that pages read: the first host left a file there."""
    path = hosts.file_of(_prefix())
    own_path = path.with_suffix(".tried")
    folder = {"folder": settings.ARTIFACTS_DIR}
    remedy = _(
        "Mount the first host's folder of files there, writable by this account, or use a bucket: "
        "BENCHLAB_ARTIFACTS."
    )
    try:
        if not path.is_file():
            text = _("%(folder)s is not the folder of the first host.") % folder
            return Outcome("files", FAILED, text, remedy)
        own_path.write_text(settings.HOST_NAME)
        own_path.unlink()
    except OSError as error:
        return Outcome("files", FAILED, health_checks.one_line(error), remedy)
    text = _("%(folder)s is that of the first host, and can be written to.") % folder
    return Outcome("files", OK, text)


def _prefix() -> str:
    hosts_here = WorkerHost.objects.filter(pk=settings.WORKER_HOST)
    return hosts_here.values_list("prefix", flat=True).first() or "-"


def _server() -> Outcome:
    """Whether one server can be logged in to."""
    if not hosts.may_log_in():
        text = _("This host may not log in to servers yet: it takes no runs.")
        remedy = _("On the first host: manage.py hosts --allow %(name)s.")
        return Outcome(
            "server", WARNING, text, remedy % {"name": settings.HOST_NAME or "-"}
        )
    ready = Server.objects.filter(state=Server.State.READY).exclude(base_dir="")
    reached = ready.exclude(pk__in=sites.unreached()).select_related("ssh_key", "jump")
    server = reached.order_by("pk").first()
    if server is None:
        return Outcome("server", WARNING, _("No server is registered and ready yet."))
    try:
        logins.ask(logins.greet(logins.way_to(server)), server)
    except TargetProblem as problem:
        remedy = _("Let this host reach it, or give server and host a site.")
        return Outcome("server", FAILED, problem.message, remedy)
    text = _("It logs in to %(server)s.") % {"server": server.name}
    return Outcome("server", OK, text)
