"""The circumstances of an upload: machine, PostgreSQL, revision."""

import difflib
import functools
import re
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.utils.translation import gettext as _

from runs.cells.selectors import versions
from runs.postgresql_settings import catalogue, secrets
from runs.shared.api import upload_limits
from runs.uploads.api.fields import FieldReader, Object, pointer_below
from runs.uploads.services import GivenMergeBase, GivenProfile, GivenRevision

# From so many settings on it is all that a server has; every version has more.
WHOLE_LISTING = 150
SETTING = re.compile(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)*")
POSTGRESQL = frozenset({"version", "settings"})
REVISION = frozenset(
    {"sha", "ref", "url", "committed_at", "parents", "subject", "author", "merge_base"}
)
MERGE_BASE = frozenset({"sha", "committed_at"})
TOOL = frozenset({"name", "version"})
SHA = re.compile(r"[0-9a-fA-F]{7,64}")
REF_PREFIX = re.compile(r"\A(?:refs/(?:heads|tags|remotes/[^/]{1,100})/|refs/|origin/)")
IS_URL = URLValidator(schemes=["http", "https"])


def hardware(run: FieldReader) -> GivenProfile | None:
    """A slug, or an object of what is known of the machine."""
    machine = _profile(
        run, "hardware", upload_limits.HARDWARE_TEXTS, upload_limits.HARDWARE_NUMBERS
    )
    if machine is None or machine.slug:
        return machine
    return GivenProfile(
        fields={"name": machine.fields.get("cpu_model", "?"), **machine.fields}
    )


def environment(run: FieldReader) -> GivenProfile | None:
    """A slug, or an object of what is known of the system."""
    return _profile(run, "environment", upload_limits.ENVIRONMENT_TEXTS, {})


def _profile(
    run: FieldReader,
    name: str,
    texts: Mapping[str, int],
    numbers: Mapping[str, tuple[int, int]],
) -> GivenProfile | None:
    """`texts` each with its greatest length, `numbers` with their least and greatest value."""
    if isinstance(run.body.get(name), str):
        profile_slug = run.slug(name, most=120)
        return GivenProfile(slug=profile_slug) if profile_slug else None
    profile = run.mapping(name, or_text=True)
    if profile is None:
        return None
    profile.refuse_unknown({*texts, *numbers, "facts"})
    fields: Object = {key: profile.text(key, most=most) for key, most in texts.items()}
    for key, (least, most) in numbers.items():
        fields[key] = profile.whole(key, least=least, most=most)
    fields = {key: value for key, value in fields.items() if value} | _facts(profile)
    if not fields:
        run.fault(name, "empty", _("It is empty: leave it out."))
        return None
    return GivenProfile(fields=fields)


def postgresql(run: FieldReader) -> tuple[str, dict[str, str]]:
    """The version and the settings of the server that was measured."""
    postgresql = run.mapping("postgresql")
    if postgresql is None:
        return "", {}
    postgresql.refuse_unknown(POSTGRESQL)
    version = versions.extract_version(postgresql.text("version", most=200))
    if version and not versions.TEXT.fullmatch(version):
        message = _(
            "Not a version, such as 16, 16.14 or 18.3 (Ubuntu 18.3-1.pgdg22.04+1)."
        )
        postgresql.fault("version", "not_a_version", message)
        version = ""
    if version and not versions.is_released(version):
        message = _("There is no PostgreSQL %(version)s.") % {"version": version}
        postgresql.fault("version", "not_a_version", message)
        version = ""
    settings = postgresql.strings("settings", most=1000, most_characters=10_000)
    _check_settings(postgresql, settings, version)
    return version, secrets.masked_all(settings)


def _check_settings(
    postgresql: FieldReader, settings: Mapping[str, str], version: str
) -> None:
    """Names that no version has. Of versions that are newer than the catalogue nobody knows.

    A whole listing is the server's own word: packages have settings of their own (Debian's
    `extension_destdir`), and so has a commit that adds one.
    """
    if version and catalogue.known_major(version) is None:
        return
    if len(settings) >= WHOLE_LISTING and all(map(SETTING.fullmatch, settings)):
        return
    for name in settings:
        if SETTING.fullmatch(name) and (
            "." in name or name.lower() in _known_settings()
        ):
            continue
        nearest = difflib.get_close_matches(name.lower()[:100], _known_settings(), n=1)
        message = _("PostgreSQL has no setting of this name.")
        if nearest:
            message += " " + _("The nearest is %(name)s.") % {"name": nearest[0]}
        postgresql.faults.add(
            pointer_below(f"{postgresql.at}/settings", name[:100]),
            "unknown_setting",
            message,
        )


@functools.cache
def _known_settings() -> frozenset[str]:
    return frozenset(name.lower() for name in catalogue.all_names())


def tool(run: FieldReader) -> tuple[str, str]:
    """Name and version of the load generator; the name alone is enough."""
    if isinstance(run.body.get("tool"), str):
        return run.text("tool", most=40), ""
    tool = run.mapping("tool", or_text=True)
    if tool is None:
        return "", ""
    tool.refuse_unknown(TOOL)
    return tool.text("name", most=40, required=True), tool.text("version", most=40)


def revision(run: FieldReader) -> GivenRevision | None:
    """The commit that was measured."""
    revision = run.mapping("revision")
    if revision is None:
        return None
    revision.refuse_unknown(REVISION)
    sha = revision.text("sha", most=64, required=True)
    if sha and not SHA.fullmatch(sha):
        revision.fault("sha", "not_a_sha", _("Not 7 to 64 hexadecimal digits."))
    elif sha and not sha.strip("0"):
        revision.fault("sha", "not_a_sha", _("Zeros alone are no commit."))
    url = revision.text("url", most=500)
    if url and not _is_url(url):
        revision.fault(
            "url", "not_a_url", _("Not an address that begins with https://.")
        )
    return GivenRevision(
        sha=sha.lower(),
        ref=_branch(revision.text("ref", most=200)),
        url=url,
        committed_at=revision.time("committed_at"),
        parents=_parents(revision, sha.lower()),
        subject=_line(revision.text("subject", most=upload_limits.LONGEST_SUBJECT)),
        author=_line(revision.text("author", most=upload_limits.LONGEST_AUTHOR)),
        merge_base=_merge_base(revision, sha.lower()),
    )


def _line(text: str) -> str:
    """A text as one line: a message, or a name, may be of several."""
    return " ".join(text.split())


def _merge_base(revision: FieldReader, sha: str) -> GivenMergeBase | None:
    """Where the commit left the branch that it is compared with; None for the commit itself."""
    merge_base = revision.mapping("merge_base")
    if merge_base is None:
        return None
    merge_base.refuse_unknown(MERGE_BASE)
    base_sha = merge_base.text("sha", most=64, required=True)
    if base_sha and not SHA.fullmatch(base_sha):
        merge_base.fault("sha", "not_a_sha", _("Not 7 to 64 hexadecimal digits."))
    committed_at = merge_base.time("committed_at")
    if not base_sha.strip("0") or base_sha.lower() == sha:
        return None
    return GivenMergeBase(base_sha.lower(), committed_at)


def _branch(ref: str) -> str:
    """A branch as git shows it, however a CI spells it; none where HEAD is on none."""
    ref = ref.strip()
    is_none = ref in ("HEAD", "detached") or ref.startswith(
        "("
    )  # as Jenkins and git branch say it
    return "" if is_none else REF_PREFIX.sub("", ref, count=1)


def _parents(revision: FieldReader, sha: str) -> tuple[str, ...]:
    parents = revision.items("parents", most=upload_limits.MOST_PARENTS)
    for index, parent in enumerate(parents):
        name = f"parents/{index}"
        if type(parent) is not str or not SHA.fullmatch(parent):
            revision.fault(name, "not_a_sha", _("Not 7 to 64 hexadecimal digits."))
        elif sha and (sha.startswith(parent.lower()) or parent.lower().startswith(sha)):
            revision.fault(name, "own_parent", _("A commit is not its own parent."))
        elif parent in parents[:index]:
            revision.fault(name, "repeated", _("Given more than once."))
    return tuple(
        parent.lower()
        for parent in parents
        if isinstance(parent, str) and parent.strip("0")
    )


def _facts(profile: FieldReader) -> Object:
    facts = profile.mapping("facts")
    if facts is None or not facts.body:
        return {}
    if _is_deep(facts.body, upload_limits.DEEPEST_FACTS):
        message = _("Nested more than %(most)d deep.") % {
            "most": upload_limits.DEEPEST_FACTS
        }
        profile.fault("facts", "too_deep", message)
        return {}
    flat: list[Any] = [facts.body]
    for value in flat:  # it grows while it is walked
        if isinstance(value, dict):
            flat += [*value, *value.values()]
        elif isinstance(value, list):
            flat += value
        elif isinstance(value, str):
            profile.is_storable(value, facts.at, most=10_000)
        elif isinstance(value, float) and value - value != 0:
            profile.fault("facts", "not_finite", _("Not a finite number."))
        if len(flat) > 10_000:
            profile.fault("facts", "too_many", _("Too many facts."))
            break
    return {"facts": facts.body}


def _is_deep(value: Any, most: int) -> bool:
    if most < 0:
        return True
    if isinstance(value, dict):
        return any(_is_deep(member, most - 1) for member in value.values())
    if isinstance(value, list):
        return any(_is_deep(element, most - 1) for element in value)
    return False


def _is_url(value: str) -> bool:
    try:
        IS_URL(value)
    except ValidationError:
        return False
    return True
