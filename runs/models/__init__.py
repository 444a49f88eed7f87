"""What is stored. One module per noun; the same noun names the module in every layer."""

from runs.models.annotations import Annotation
from runs.models.artifacts import Artifact
from runs.models.audit import AuditEntry
from runs.models.bisections import Bisection, BisectionStep
from runs.models.builds import Build
from runs.models.campaigns import Campaign, CampaignConfiguration, Cell, CellSummary
from runs.models.changes import Change, StaleCell
from runs.models.clusters import PreparedCluster
from runs.models.commands import Command
from runs.models.comparisons import SavedComparison
from runs.models.hardware import Environment, HardwareProfile
from runs.models.instances import Instance
from runs.models.invitations import Invitation
from runs.models.leases import Lease
from runs.models.measurements import Measurement, Series
from runs.models.metrics import Metric
from runs.models.postgres import (
    Configuration,
    ConfigurationRevision,
    Installation,
    SettingsSnapshot,
)
from runs.models.projects import Membership, Project
from runs.models.revisions import Revision, RevisionRef
from runs.models.runs import Run, RunCount, RunEvent
from runs.models.scenarios import Scenario
from runs.models.schedules import Schedule, ScheduleEvent
from runs.models.seals import Seal, SealRequest
from runs.models.server_checks import CheckedServer, ServerCheck
from runs.models.servers import Server, ServerEvent
from runs.models.sources import (
    Discrepancy,
    PrintedFigure,
    PublicationDraft,
    PublishedNode,
    PublishedTable,
    Source,
)
from runs.models.ssh_keys import SSHKey
from runs.models.tokens import Token
from runs.models.topologies import Topology, TopologyNode
from runs.models.uploads import Upload
from runs.models.webhooks import Webhook, WebhookDelivery
from runs.models.workloads import Workload, WorkloadVersion

__all__ = [
    "Annotation",
    "Artifact",
    "AuditEntry",
    "Bisection",
    "BisectionStep",
    "Build",
    "Campaign",
    "CampaignConfiguration",
    "Cell",
    "CellSummary",
    "Change",
    "CheckedServer",
    "Command",
    "Configuration",
    "ConfigurationRevision",
    "Discrepancy",
    "Environment",
    "HardwareProfile",
    "Installation",
    "Instance",
    "Invitation",
    "Lease",
    "Measurement",
    "Membership",
    "Metric",
    "PreparedCluster",
    "PrintedFigure",
    "Project",
    "PublicationDraft",
    "PublishedNode",
    "PublishedTable",
    "Revision",
    "RevisionRef",
    "Run",
    "RunCount",
    "RunEvent",
    "SSHKey",
    "SavedComparison",
    "Scenario",
    "Schedule",
    "ScheduleEvent",
    "Seal",
    "SealRequest",
    "Series",
    "Server",
    "ServerCheck",
    "ServerEvent",
    "SettingsSnapshot",
    "Source",
    "StaleCell",
    "Token",
    "Topology",
    "TopologyNode",
    "Upload",
    "Webhook",
    "WebhookDelivery",
    "Workload",
    "WorkloadVersion",
]
