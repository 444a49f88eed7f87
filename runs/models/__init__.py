"""What is stored. One module per noun; the same noun names the module in every layer."""

from runs.models.bisections import Ablation, Bisection, BisectionStep, Build
from runs.models.campaigns import (
    Annotation,
    CacheVersion,
    Campaign,
    CampaignConfiguration,
    Cell,
    CellSummary,
    SavedComparison,
    Scenario,
    Workload,
    WorkloadVersion,
)
from runs.models.changes import Change, GateAnswer, StaleCell, Webhook, WebhookDelivery
from runs.models.hosts import HostSecret, WorkerHost
from runs.models.loads import Load, LoadPart
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
    Import,
    Instance,
    Run,
    RunCount,
    RunEvent,
)
from runs.models.schedules import Schedule, ScheduleEvent
from runs.models.seals import AuditLink, Seal, SealRequest
from runs.models.server_checks import CheckedServer, ServerCheck
from runs.models.servers import (
    Environment,
    HardwareProfile,
    HourlyLoad,
    Lease,
    Machine,
    PreparedCluster,
    Server,
    ServerEvent,
    SSHKey,
    Topology,
    TopologyNode,
)
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
