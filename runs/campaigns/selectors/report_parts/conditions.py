"""The conditions of a campaign for its report: machines, systems, settings, constants."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from runs.cells.selectors import factor_names, versions
from runs.configurations.selectors import configurations
from runs.models import Campaign, Run
from runs.reports.report import Block, Facts, Table
from runs.servers.selectors import builds, machine_words
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
            machine_words.hardware(run.hardware),
            machine_words.environment(run.environment),
        )
        for run in runs
    )
    heads = (_("Server"), _("Hardware"), _("Environment"))
    return [Table(_("Machines"), heads, rows)] if rows else []


def programs(campaign: Campaign) -> list[Block]:
    """The versions of server and tool, as the runs found them."""
    columns = ("server_version", "tool_name", "tool_version")
    used = campaign.runs.filter(state=Run.State.FINISHED).values_list(*columns)
    in_order = sorted(
        used.order_by(*columns).distinct(), key=lambda row: versions.order(row[0])
    )
    rows = tuple(
        (server or "–", f"{tool} {version}".strip() or "–")
        for server, tool, version in in_order
        if server or tool
    )
    tables = (
        [Table(_("Software"), ("PostgreSQL", _("Load tool")), rows)] if rows else []
    )
    built = tuple(
        (
            installation.version,
            builds.words(installation) or "–",
            _flags(installation.cflags) or "–",
        )
        for installation in builds.list_installations(campaign)
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
    words = factor_names.words(campaign)
    titles = {"version": _("Version"), **words.titles}
    rows = [
        (
            titles.get(name, name.replace("_", " ")),
            ", ".join(str(words.level(name, level)) for level in levels),
        )
        for name, levels in campaign.factors.items()
    ]
    rows += [
        *factor_names.parameter_texts(campaign),
        *workloads.treatment_rows(campaign),
    ]
    repeats = campaign.known_repeats
    rows.append((_("Repeats"), _("not printed") if repeats is None else str(repeats)))
    if campaign.topology:
        rows.append((_("Topology"), str(campaign.topology.get_kind_display())))
    return Facts(tuple(rows))


def order(campaign: Campaign) -> str:
    """In which order the runs were executed, and what of the repeats is told."""
    text = _("Of the repeats the median is taken.")
    if campaign.seed:
        text += " " + _(
            "The runs were executed in a random order; its seed is %(seed)s."
        ) % {"seed": campaign.seed}
    return text
