"""Configurations: named PostgreSQL settings, one row per name, one revision per content."""

from dataclasses import replace

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs.access.selectors import projects
from runs.access.services import audit
from runs.access.services.projects import default
from runs.configurations.services import fitted_configurations
from runs.configurations.services.contents import FIXED_POINT, Content
from runs.configurations.services.contents import content as content_of
from runs.models import Configuration, ConfigurationRevision, Project
from runs.postgresql_settings import secrets
from runs.shared import slugs
from runs.shared.errors import Refused, ServiceError

Origin = Configuration.Origin

# Cannot be slugs: they are the addresses of other pages.
NOT_SLUGS = frozenset({"check", "diff", "names", "new"})
FIXED_POINT_SLUG = "fixed-point-small"
DEFAULTS_SLUG = "postgresql-defaults"


@transaction.atomic
def built_in() -> Configuration:
    """The configuration of a campaign that names none."""
    return store(
        slug=FIXED_POINT_SLUG,
        name=gettext_noop("Fixed-point observation, small machine"),
        description=gettext_noop(
            "After the settings of the WG1 reports; all data of a small scale in memory."
        ),
        content=Content(FIXED_POINT),
        origin=Origin.BUILT_IN,
    )


@transaction.atomic
def sync() -> None:
    """Create the built-in configurations, or update them."""
    built_in()
    defaults()


@transaction.atomic
def defaults() -> Configuration:
    """The configuration without any setting."""
    return store(
        slug=DEFAULTS_SLUG,
        name=gettext_noop("PostgreSQL defaults"),
        description=gettext_noop(
            "No setting at all: each version as initdb leaves it."
        ),
        content=Content(),
        origin=Origin.BUILT_IN,
    )


@transaction.atomic
def store(
    *,
    slug: str,
    name: str,
    description: str,
    content: Content,
    origin: str = Origin.OWN,
    by: User | None = None,
    name_ja: str = "",
    project: Project | None = None,
) -> Configuration:
    """Create a configuration of a project (None: of the instance), or update that with the slug.

    Changed content becomes a new revision. Nothing is checked here: published settings are stored
    as printed, except for passwords, which nobody needs to read.
    """
    settings = secrets.masked_all(content.settings)
    content = replace(
        content, settings=settings, initdb_options=list(content.initdb_options)
    )
    fields = {
        "name": name,
        "name_ja": name_ja,
        "description": description,
        "origin": origin,
        **vars(content),
        "content_hash": content.digest,
    }
    stored_rows = Configuration.objects.filter(slug=slug).values(
        "name", "settings", "initdb_options"
    )
    before = stored_rows.first()
    configuration, is_new = Configuration.objects.update_or_create(
        slug=slug,
        defaults=fields,
        create_defaults={**fields, "project": project, "created_by": by},
    )
    current_revision(configuration=configuration, by=by, is_new=is_new)
    audit.record(
        "configuration_made" if is_new else "configuration_changed",
        f"configuration {slug}",
        project=configuration.project_id,
        before=before,
        after={name: fields[name] for name in ("name", "settings", "initdb_options")},
    )
    return configuration


@transaction.atomic
def current_revision(
    *, configuration: Configuration, by: User | None = None, is_new: bool = False
) -> ConfigurationRevision:
    """The revision of the present content; it is kept from now on."""
    latest = None if is_new else configuration.revisions.order_by("-number").first()
    if latest is not None and latest.content_hash == configuration.content_hash:
        return latest
    return ConfigurationRevision.objects.create(
        configuration=configuration,
        number=latest.number + 1 if latest else 1,
        **vars(content_of(configuration)),
        content_hash=configuration.content_hash,
        created_by=by,
    )


@transaction.atomic
def create(
    *,
    name: str,
    description: str,
    content: Content,
    project: Project | None = None,
    slug: str = "",
    by: User | None = None,
) -> Configuration:
    """A configuration of a project; None is the default one.

    Raises ServiceError for a slug that another one has which the project may know of, Refused with
    every fault of its settings. In a private project its slug has the project's.
    """
    _require_name(name)
    project = project or default()
    usable = projects.usable(Configuration.objects.all(), in_project=project.pk)
    own_slug = slugs.qualify_slug(slug, project, of=Configuration)
    if slug and usable.filter(slug__in=[slug, own_slug]).exists():
        message = _("There is a configuration %(slug)s already.") % {"slug": slug}
        raise ServiceError(
            "slug_taken", message, remedy=_("Choose another name."), field="slug"
        )
    _require_startable(content)
    return store(
        slug=free_slug(slug or name, project),
        name=name.strip(),
        description=description,
        content=content,
        by=by,
        project=project,
    )


@transaction.atomic
def edit(
    *,
    configuration: Configuration,
    name: str,
    description: str,
    content: Content,
    by: User | None = None,
) -> Configuration:
    """Change a configuration's content. Runs that are queued or done keep what they had.

    Raises ServiceError for a configuration of somebody else, Refused with every fault.
    """
    if configuration.origin != Origin.OWN:
        message = _("Built-in and published configurations stay as they are.")
        raise ServiceError("not_own", message, remedy=_("Make a copy and change that."))
    _require_name(name)
    _require_startable(content)
    return store(
        slug=configuration.slug,
        name=name.strip(),
        description=description,
        content=content,
        by=by,
    )


def _require_name(name: str) -> None:
    if not name.strip():
        raise ServiceError("no_name", _("The configuration has no name."), field="name")


def _require_startable(content: Content) -> None:
    faults = fitted_configurations.faults(content)
    if faults:
        raise Refused("contradicts", faults)


def free_slug(name: str, project: Project | None) -> str:
    """A slug of a name in a project that nothing has yet."""
    wanted_slug = slugify(name)[:90] or "configuration"
    return slugs.free(
        Configuration, wanted_slug, project=project, forbidden_slugs=NOT_SLUGS
    )
