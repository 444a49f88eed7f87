"""Workloads: users' own pgbench scripts, checked and stored as versions that never change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.access.services import audit
from runs.access.services.projects import default
from runs.campaigns.services.designs import Design
from runs.execution.plan import WorkloadContent
from runs.models import Project, Workload, WorkloadVersion
from runs.scenarios.definition import Level
from runs.scenarios.pgbench_load import BUILT_IN, OWN_SEPARATOR, has_psql_commands
from runs.shared import reading, slugs
from runs.shared.errors import Fault, Problem, Refused
from runs.tools.pgbench import UnsupportedByToolError, adapt_script, command
from runs.tools.pgbench.scripts import Fault as ScriptFault
from runs.tools.pgbench.scripts import GivenScript
from runs.tools.pgbench.versions import MAXIMUM_TRIES

SCRIPT_FACTOR = "script"
# Cannot be slugs: they are the addresses of other pages.
NOT_SLUGS = ("new",)
# The version assumed for a pgbench that is not known yet.
NEWEST = 999_999
MOST_SQL_CHARACTERS = 1_000_000
_SENTENCES = {
    "no_script": gettext_lazy("There is no script."),
    "too_many_scripts": gettext_lazy("There are more than %(word)s scripts."),
    "name_twice": gettext_lazy("Two scripts have the name %(word)s."),
    "bad_variable": gettext_lazy("%(word)s cannot be the name of a variable."),
    "bad_weight": gettext_lazy(
        "A weight of %(word)s: it has to be 1 or more. Leave out a script that is never to run."
    ),
    "too_long": gettext_lazy("It has more than %(word)s characters."),
    "no_sql": gettext_lazy("It has no SQL."),
    "quote_open": gettext_lazy("A quote is opened and not closed: %(word)s"),
    "variable_missing": gettext_lazy(
        "The variable :%(word)s is not set. Set it above by \\set, or among the variables."
    ),
    "setrandom": gettext_lazy(
        "Write \\set name random(low, high) in place of \\setrandom."
    ),
    "unknown_command": gettext_lazy("%(word)s is no command of pgbench."),
    "shell": gettext_lazy(
        "%(word)s runs a program on the server; an administrator has to allow that "
        "(BENCHLAB_ALLOW_SHELL_SCRIPTS)."
    ),
    "bad_set": gettext_lazy("\\set needs a name and an expression, not “%(word)s”."),
    "bad_expression": gettext_lazy(
        "pgbench cannot read the expression from “%(word)s” on."
    ),
    "unexpected_words": gettext_lazy(
        "“%(word)s” is too much: the command takes no such words."
    ),
    "no_statement": gettext_lazy("%(word)s has no statement before it."),
    "bad_sleep": gettext_lazy(
        "\\sleep needs a number and us, ms or s, not “%(word)s”."
    ),
    "no_condition": gettext_lazy("%(word)s has no condition."),
    "condition_open": gettext_lazy("This \\if has no \\endif."),
    "condition_without_if": gettext_lazy("%(word)s has no \\if."),
    "pipeline_open": gettext_lazy("This \\startpipeline has no \\endpipeline."),
    "pipeline_twice": gettext_lazy("%(word)s is in a pipeline already."),
    "no_pipeline": gettext_lazy("%(word)s is in no pipeline."),
    "not_in_pipeline": gettext_lazy("%(word)s is not allowed in a pipeline."),
}


def faults(content: WorkloadContent) -> list[Fault]:
    """Everything that is wrong with a content, before any server is involved."""
    allows_shell = bool(settings.ALLOW_SHELL_SCRIPTS)
    with reading.reader() as reader:
        script_faults = reader.script_faults(
            content.scripts, content.variables, allows_shell=allows_shell
        )
    faults_found = [_fault(fault, content.scripts) for fault in script_faults]
    try:
        command.read_init_options(content.init_options)
    except UnsupportedByToolError as error:
        faults_found.append(Fault("/init_options", "bad_option", str(error)))
    if content.has_own_tables and not content.init_sql.strip():
        message = _("A workload with its own tables needs the SQL that makes them.")
        faults_found.append(Fault("/init_sql", "no_tables", message))
    if len(content.init_sql) > MOST_SQL_CHARACTERS:
        message = _("It has more than %(word)s characters.") % {
            "word": MOST_SQL_CHARACTERS
        }
        faults_found.append(Fault("/init_sql", "too_long", message))
    if has_psql_commands(content.init_sql):
        message = _(
            "Commands of psql are not run here, so it must not contain a backslash: write chr(92) "
            "for one in a string, and [0-9] or [[:space:]] in a regular expression."
        )
        faults_found.append(Fault("/init_sql", "psql_command", message))
    return faults_found


def create(
    *,
    name: str,
    description: str,
    content: WorkloadContent,
    project: Project | None = None,
    by: User | None = None,
) -> WorkloadVersion:
    """The first version of a new workload of a project; None is the default one.

    Raises Refused with all faults of its content.
    """
    check(content)
    with transaction.atomic():
        project = project or default()
        workload = Workload(
            name=name.strip(), description=description, project=project, created_by=by
        )
        reserved_names = (*NOT_SLUGS, *BUILT_IN)
        slugs.store(
            workload,
            called=name,
            otherwise="workload",
            project=project,
            taken=reserved_names,
        )
        details = {"name": workload.name}
        audit.record("workload_made", workload, after=details)
        return _version(workload, 1, content, by)


def edit(
    *,
    workload: Workload,
    name: str,
    description: str,
    content: WorkloadContent,
    by: User | None = None,
) -> WorkloadVersion:
    """A further version, or the current one if the content has not changed.

    Raises Refused with all faults of the content.
    """
    check(content)
    with transaction.atomic():
        locked = Workload.objects.select_for_update().get(pk=workload.pk)
        was = {"name": locked.name, "description": locked.description}
        locked.name, locked.description = name.strip(), description
        locked.save(update_fields=["name", "description"])
        now = {"name": locked.name, "description": locked.description}
        newest = locked.versions.order_by("-number").first()
        number = newest.number if newest else 0
        is_other = newest is None or content_of(newest) != content
        if is_other or was != now:
            was |= {"version": str(number)}
            now |= {"version": str(number + is_other)}
            audit.record("workload_changed", locked, before=was, after=now)
        if newest is not None and not is_other:
            return newest
        return _version(locked, number + 1, content, by)


def content_of(version: WorkloadVersion) -> WorkloadContent:
    """The content of a version."""
    names = [field.name for field in fields(WorkloadContent)]
    return WorkloadContent.of({name: getattr(version, name) for name in names})


def names_own(levels: Mapping[str, Sequence[Level]]) -> bool:
    """Whether the levels of a campaign's factors name a version of an own workload."""
    return any(OWN_SEPARATOR in str(level) for level in levels.get(SCRIPT_FACTOR, ()))


def versions(levels: Sequence[Level]) -> dict[str, WorkloadVersion]:
    """The versions that levels such as `slug@3` name, by level; built-in scripts have none."""
    partitioned_levels = [str(level).partition(OWN_SEPARATOR) for level in levels]
    slugs_named = [slug for slug, separator, _number in partitioned_levels if separator]
    if not slugs_named:
        return {}
    versions_found = WorkloadVersion.objects.filter(workload__slug__in=slugs_named)
    by_level = {
        str(workload_version): workload_version
        for workload_version in versions_found.select_related("workload")
    }
    return {
        str(level): by_level[str(level)] for level in levels if str(level) in by_level
    }


def problems(design: Design) -> Iterator[Problem]:
    """Why the scripts and options of a design cannot run at all, or not with its pgbench.

    One query if it names a user's own workload.
    """
    if not any(factor.name == SCRIPT_FACTOR for factor in design.scenario.factors):
        return
    levels = design.draft.levels.get(SCRIPT_FACTOR, ())
    own_versions, client = versions(levels), _client(design)
    for level in levels:
        if str(level) not in BUILT_IN and str(level) not in own_versions:
            message = _("There is no workload %(level)s.") % {"level": level}
            remedy = _("Choose one of the options.")
            yield Problem("unknown_workload", message, remedy, SCRIPT_FACTOR)
    for name, version in own_versions.items():
        for fault in faults(content_of(version)):
            message = f"{name}: {fault.message}"
            yield Problem(
                fault.code, message, _("Store a further version."), SCRIPT_FACTOR
            )
        yield from _tool_problems(version, client)
    if design.draft.parameters.get("max_tries") and client < MAXIMUM_TRIES:
        message = _("Trying a transaction again needs pgbench 15 or later.")
        yield Problem(
            "unsupported_by_tool", message, _("Choose another pgbench."), "max_tries"
        )


def _client(design: Design) -> int:
    """The oldest pgbench that will generate load; a new one is assumed if there is none yet."""
    client_versions = [
        server_part.tools.pgbench.pgbench_version_num
        for server_part in design.parts
        if server_part.tools
    ]
    return min(
        (version_number for version_number in client_versions if version_number),
        default=NEWEST,
    )


def _tool_problems(version: WorkloadVersion, client_version: int) -> Iterator[Problem]:
    try:
        command.init_options_for_tool(version.init_options, client_version)
        for script in version.scripts:
            adapt_script(script["text"], client_version)
    except UnsupportedByToolError as error:
        remedy = _("Choose another pgbench.")
        yield Problem(
            "unsupported_by_tool", f"{version}: {error}", remedy, SCRIPT_FACTOR
        )


def check(content: WorkloadContent) -> None:
    """Raise Refused with all faults of a content; stores nothing."""
    if content_faults := faults(content):
        raise Refused("invalid", content_faults)


def _version(
    workload: Workload, number: int, content: WorkloadContent, by: User | None
) -> WorkloadVersion:
    return WorkloadVersion.objects.create(
        workload=workload,
        number=number,
        scripts=[vars(script) for script in content.scripts],
        variables=dict(content.variables),
        init_options=content.init_options.strip(),
        init_sql=content.init_sql,
        has_own_tables=content.has_own_tables,
        created_by=by,
    )


def _fault(script_fault: ScriptFault, scripts: Sequence[GivenScript]) -> Fault:
    sentence = str(_SENTENCES[script_fault.code]) % {"word": script_fault.word[:80]}
    if script_fault.code == "bad_variable":
        return Fault("/variables", script_fault.code, sentence)
    if not script_fault.script:
        return Fault("/scripts", script_fault.code, sentence)
    position = next(
        index
        for index, script in enumerate(scripts)
        if script.name == script_fault.script
    )
    line_text = (
        _("Line %(line)d: ") % {"line": script_fault.line} if script_fault.line else ""
    )
    return Fault(f"/scripts/{position}", script_fault.code, f"{line_text}{sentence}")
