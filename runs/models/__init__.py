"""What is stored. One module a noun; the same noun names the module in every layer."""

from runs.models.artifacts import Artifact
from runs.models.campaigns import Campaign, Cell, CellSummary
from runs.models.clusters import PreparedCluster
from runs.models.commands import Command
from runs.models.hardware import Environment, HardwareProfile
from runs.models.instances import Instance
from runs.models.leases import Lease
from runs.models.measurements import Measurement, Series
from runs.models.metrics import Metric
from runs.models.postgres import Configuration, Installation, SettingsSnapshot
from runs.models.runs import Run, RunEvent
from runs.models.scenarios import Scenario
from runs.models.servers import Server
from runs.models.ssh_keys import SSHKey
from runs.models.topologies import Topology, TopologyNode

__all__ = [
    "Artifact",
    "Campaign",
    "Cell",
    "CellSummary",
    "Command",
    "Configuration",
    "Environment",
    "HardwareProfile",
    "Installation",
    "Instance",
    "Lease",
    "Measurement",
    "Metric",
    "PreparedCluster",
    "Run",
    "RunEvent",
    "SSHKey",
    "Scenario",
    "Series",
    "Server",
    "SettingsSnapshot",
    "Topology",
    "TopologyNode",
]
