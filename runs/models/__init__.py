"""What is stored. One module per noun; the same noun names the module in every layer."""

from runs.models.ablations import Ablation
from runs.models.bisections import Bisection, BisectionStep
from runs.models.builds import Build
from runs.models.cache_versions import CacheVersion
from runs.models.campaigns import (
    Annotation,
    Campaign,
    CampaignConfiguration,
    Cell,
    CellSummary,
    SavedComparison,
)
from runs.models.changes import Change, StaleCell, Webhook, WebhookDelivery
from runs.models.gate_answers import GateAnswer
from runs.models.hardware import Environment, HardwareProfile
from runs.models.leases import Lease, PreparedCluster
from runs.models.measurements import Measurement, Metric, Series
from runs.models.observations import Edition, Observation
from runs.models.postgres import (
    Configuration,
    ConfigurationRevision,
    Installation,
    SettingsSnapshot,
)
from runs.models.projects import AuditEntry, Invitation, Membership, Project, Token
from runs.models.runs import (
    Artifact,
    Command,
    Instance,
    Run,
    RunCount,
    RunEvent,
)
from runs.models.schedules import Schedule, ScheduleEvent
from runs.models.seals import AuditLink, Seal, SealRequest
from runs.models.server_checks import CheckedServer, ServerCheck
from runs.models.servers import Server, ServerEvent, SSHKey, Topology, TopologyNode
from runs.models.sources import (
    Discrepancy,
    PrintedFigure,
    PublishedNode,
    PublishedTable,
    Revision,
    RevisionRef,
    Source,
    Upload,
)
from runs.models.workloads import Scenario, Workload, WorkloadVersion

__all__ = [
    "Ablation",
    "Annotation",
    "Artifact",
    "AuditEntry",
    "AuditLink",
    "Bisection",
    "BisectionStep",
    "Build",
    "CacheVersion",
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
    "Edition",
    "Environment",
    "GateAnswer",
    "HardwareProfile",
    "Installation",
    "Instance",
    "Invitation",
    "Lease",
    "Measurement",
    "Membership",
    "Metric",
    "Observation",
    "PreparedCluster",
    "PrintedFigure",
    "Project",
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
