"""The conditions of a campaign for its report: machines, systems, settings, constants."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from runs.cells.selectors import factor_names as designs
from runs.cells.selectors import versions
from runs.configurations.selectors import configurations
from runs.models import Campaign, Environment, HardwareProfile, Run
from runs.reports.report import Block, Facts, Table
from runs.servers.selectors import builds
from runs.shared.formats import memory, named, spoken, term
from runs.workloads.selectors import workloads


def machines(campaign: Campaign) -> list[Block]:
    """One row for each combination of server, hardware and environment that took part."""
    runs = (
        campaign.runs.exclude(hardware=None, environment=None, server=None)
        .order_by("server_id", "hardware_id", "environment_id", "pk")
        .select_related("server", "hardware", "environment")
        .distinct("server_id", "hardware_id", "environment_id")
        .defer("plan")
    )
    rows = tuple(
        (
            run.server.name if run.server else "–",
            hardware(run.hardware),
            environment(run.environment),
        )
        for run in runs
    )
    heads = (_("Server"), _("Hardware"), _("Environment"))
    return [Table(_("Machines"), heads, rows)] if rows else []


def programs(campaign: Campaign) -> list[Block]:
    """The versions of server and tool, as the runs found them."""
    columns = ("server_version", "tool_name", "tool_version")
    used = campaign.runs.filter(state=Run.State.FINISHED).values_list(*columns)
    in_order = sorted(used.order_by(*columns).distinct(), key=lambda row: versions.order(row[0]))
    rows = tuple(
        (server or "–", f"{tool} {version}".strip() or "–")
        for server, tool, version in in_order
        if server or tool
    )
    tables = [Table(_("Software"), ("PostgreSQL", _("Load tool")), rows)] if rows else []
    built = tuple(
        (
            installation.version,
            builds.words(installation) or "–",
            _flags(installation.cflags) or "–",
        )
        for installation in builds.of_campaign(campaign)
    )
    heads = ("PostgreSQL", _("Build"), "CFLAGS")
    return [*tables, Table(_("Build"), heads, built)] if built else [*tables]


def _flags(cflags: str) -> str:
    """Those that change the program: not which warnings the compiler gives."""
    return " ".join(flag for flag in cflags.split() if not flag.startswith("-W"))


def settings(campaign: Campaign) -> list[Block]:
    """The configurations by name; empty if everything was at its default."""
    blocks: list[Block] = []
    for contained in configurations.contained(campaign):
        rows = {name: str(value) for name, value in contained.settings.items()}
        options = " ".join(map(str, contained.initdb_options))
        rows |= {"initdb": options} if options else {}
        blocks += [settings_table(contained.name, rows)] if rows else []
    return blocks


def settings_table(name: str, settings: Mapping[str, Any]) -> Table:
    """Settings of postgresql.conf."""
    caption = _("Settings: %(name)s") % {"name": name}
    rows = tuple((setting, str(value)) for setting, value in settings.items())
    return Table(caption, (_("Setting"), _("Value")), rows)


def kept(campaign: Campaign) -> Facts:
    """Factors with their levels, parameters, repeats and the order of the runs."""
    words = designs.words(campaign)
    titles = {"version": _("Version"), **words.titles}
    rows = [
        (
            titles.get(name, name.replace("_", " ")),
            ", ".join(str(words.level(name, level)) for level in levels),
        )
        for name, levels in campaign.factors.items()
    ]
    rows += [*designs.parameter_texts(campaign), *workloads.treatment_rows(campaign)]
    repeats = campaign.known_repeats
    rows.append((_("Repeats"), _("not printed") if repeats is None else str(repeats)))
    if campaign.topology:
        rows.append((_("Topology"), str(campaign.topology.get_kind_display())))
    return Facts(tuple(rows))


def hardware(profile: HardwareProfile | None) -> str:
    """A machine in one line; unknown facts are left out."""
    if profile is None:
        return "–"
    cores, threads = profile.cores, profile.threads
    descriptions = [
        named(profile),
        profile.cpu_model if profile.cpu_model != profile.name else "",
        _("%(count)d cores") % {"count": cores} if cores else "",
        _("%(count)d threads") % {"count": threads} if threads else "",
        memory(profile) if profile.memory_bytes else "",
        profile.virtualization,
        *(
            f"{term(name)}: {text}"
            for name, value in profile.facts.items()
            if (text := _text_of(value))
        ),
    ]
    return " · ".join(description for description in descriptions if description)


def environment(environment: Environment | None) -> str:
    """An operating system in one line."""
    if environment is None:
        return "–"
    descriptions = (environment.os_name, f"{environment.kernel} {environment.architecture}".strip())
    return " · ".join(description for description in descriptions if description) or "–"


def _text_of(value: Any) -> str:
    """A fact that is text, in both languages or one; structures are only for programs."""
    if isinstance(value, str | int | float):
        return str(value)
    is_text = isinstance(value, dict) and "en" in value and isinstance(value["en"], str)
    return spoken(value) if is_text else ""
