"""Servers: registered machines reached over SSH."""

from datetime import datetime, timedelta

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now, Upper
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class Lease(models.Model):
    """Who holds a server. One row per server; `token` grows with each claim (fencing).

    A run whose load comes from other machines holds the leases of all of them, with one token.
    """

    server = models.OneToOneField("Server", models.CASCADE, primary_key=True)
    run = models.ForeignKey("Run", models.SET_NULL, null=True, related_name="leases")
    token = models.BigIntegerField(default=0)
    holder = models.CharField(max_length=200, blank=True)
    # A person has said that no copy of this results database uses the server any more.
    may_catch_up = models.BooleanField(default=False, db_default=False)
    heartbeat_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.server_id}: {self.run_id} ({self.token})"


class HourlyLoad(models.Model):
    """What other programs took of a server's processors in an hour, while no run had it.

    `share` is the mean of the hour's looks, `highest` the highest. Hours without a look have no
    row, and rows of more than `KEPT` before a new one are removed with it.
    """

    KEPT = timedelta(days=14)

    server = models.ForeignKey(
        "Server", models.CASCADE, related_name="hourly_loads", db_index=False
    )
    hour = models.DateTimeField()
    looks = models.PositiveSmallIntegerField()
    share = models.FloatField()
    highest = models.FloatField()

    class Meta:
        ordering = ["hour"]
        constraints = [
            models.UniqueConstraint(fields=["server", "hour"], name="load_once_an_hour")
        ]

    def __str__(self) -> str:
        return f"{self.server_id}: {self.hour}"


class Machine(models.Model):
    """One machine that is registered as several servers: they measure in turn.

    A claim locks its row. A server that is the only registration of its machine has none.
    """

    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"machine {self.pk}"


class PreparedCluster(models.Model):
    """A loaded cluster in `directory` on a server, made by `prepared_by`, until removed.

    Its key says what it was made of: runs of any campaign that need the same use it. `campaign` is
    the last one that did, `used_at` when that was.
    """

    campaign = models.ForeignKey("Campaign", models.CASCADE, related_name="clusters")
    server = models.ForeignKey("Server", models.CASCADE, related_name="clusters")
    key = models.CharField(max_length=64)
    directory = models.CharField(max_length=500)
    prepared_by = models.ForeignKey("Run", models.SET_NULL, null=True, related_name="+")
    used_at = models.DateTimeField(default=timezone.now, db_default=Now())
    # On disk, after it was loaded; 0 where nobody measured it.
    bytes = models.BigIntegerField(default=0, db_default=0)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["campaign", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["server", "directory"],
                condition=models.Q(removed_at=None),
                name="prepared_cluster_once",
            ),
        ]

    def __str__(self) -> str:
        return self.directory


class HardwareProfile(models.Model):
    """A machine's hardware, stored once per content. Sizes in bytes; unknown is null."""

    fingerprint = models.CharField(max_length=64, unique=True)
    slug = models.SlugField(max_length=120, blank=True)
    name = models.CharField(_("name"), max_length=200)
    name_ja = models.CharField(max_length=200, blank=True, db_default="", default="")
    cpu_model = models.CharField(_("CPU model"), max_length=200, blank=True)
    sockets = models.PositiveIntegerField(_("sockets"), null=True)
    cores = models.PositiveIntegerField(_("cores"), null=True)
    threads = models.PositiveIntegerField(_("hardware threads"), null=True)
    memory_bytes = models.BigIntegerField(_("memory"), null=True)
    # "2 TB" as a publication prints it, whether it means 10^12 or 2^40.
    memory_printed = models.CharField(
        max_length=20, blank=True, db_default="", default=""
    )
    virtualization = models.CharField(_("virtualisation"), max_length=60, blank=True)
    # As runs/execution/machine/machine_facts.py reads them of a target, or as an upload gives them.
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug"], condition=~models.Q(slug=""), name="hardware_slug_once"
            ),
        ]
        indexes = [
            # The order of lists.
            models.Index(fields=["name", "id"], name="hardware_by_name"),
            # A filter, whose newest are few or most of all: in their order either way.
            models.Index(
                Upper("virtualization"), "id", name="hardware_by_virtualization"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Environment(models.Model):
    """OS, kernel and tool versions of a machine, stored once per content."""

    fingerprint = models.CharField(max_length=64, unique=True)
    slug = models.SlugField(max_length=120, blank=True)
    os_name = models.CharField(_("operating system"), max_length=200, blank=True)
    kernel = models.CharField(_("kernel"), max_length=200, blank=True)
    architecture = models.CharField(_("architecture"), max_length=40, blank=True)
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["os_name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug"],
                condition=~models.Q(slug=""),
                name="environment_slug_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.os_name} ({self.kernel})"


class SSHKey(models.Model):
    """A key pair; the private key is encrypted with a key that is not in the database."""

    name = models.CharField(max_length=100, unique=True)
    public_key = models.TextField()
    private_key_encrypted = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class ServerState(models.TextChoices):
    """Whether a server can be used; see `Server.State`."""

    UNCONFIRMED = "unconfirmed", _("host key not confirmed")
    READY = "ready", _("ready")
    UNREACHABLE = "unreachable", _("not reachable")
    REFUSED = "refused", _("refused")


class Server(models.Model):
    """A machine that BenchLab may run benchmarks on.

    `host_key` is the pinned public host key in OpenSSH form; it is empty until a person has
    confirmed the fingerprint, and nothing is executed before that.
    """

    State = ServerState

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(_("name"), max_length=100)
    address = models.CharField(_("address"), max_length=255)
    port = models.PositiveIntegerField(
        _("SSH port"),
        default=22,
        validators=[MinValueValidator(1), MaxValueValidator(65535)],
    )
    username = models.CharField(
        _("user"),
        max_length=64,
        validators=[
            RegexValidator(r"^[A-Za-z_][A-Za-z0-9_.-]*\$?$", _("Not a user name."))
        ],
    )
    base_dir = models.CharField(
        _("base directory"),
        max_length=255,
        validators=[
            RegexValidator(
                r"^/[^\0\n]*[^/\0\n]$", _("Give an absolute path, not the root folder.")
            )
        ],
        blank=True,
        help_text=_(
            "BenchLab writes only below this folder of the server. Left empty, the server is only "
            "a hop on the way to others, and nothing runs on it."
        ),
    )
    bindirs = models.JSONField(
        _("PostgreSQL folders"),
        default=list,
        blank=True,
        help_text=_("Folders with PostgreSQL binaries, besides the usual places."),
    )
    # A clone of PostgreSQL's repository there, whose commits BenchLab may build; empty: none.
    build_from = models.CharField(max_length=255, blank=True, default="", db_default="")
    build_options = models.JSONField(default=list, db_default=[])
    ssh_key = models.ForeignKey(
        "SSHKey", models.PROTECT, related_name="servers", verbose_name=_("SSH key")
    )
    jump = models.ForeignKey(
        "self",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="reached_through_it",
        verbose_name=_("reached through"),
        help_text=_(
            "Another registered server that the connection passes through (ProxyJump)."
        ),
    )
    site = models.CharField(
        _("site"),
        max_length=40,
        default="",
        blank=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9][a-z0-9-]*$", _("Use small letters, digits and hyphens.")
            )
        ],
        help_text=_(
            "The name of the place whose workers reach it, as in BENCHLAB_SITES. Left empty, every "
            "worker reaches it."
        ),
    )
    # Names of runs.execution.machine.privileged that BenchLab may use by sudo; none by default.
    privileges = models.JSONField(_("privileged actions"), default=list, blank=True)
    host_key = models.TextField(blank=True)
    offered_host_key = models.TextField(blank=True)
    state = models.CharField(max_length=20, choices=State, default=State.UNCONFIRMED)
    problem_code = models.CharField(max_length=60, blank=True)
    problem = models.TextField(blank=True)
    problem_remedy = models.TextField(blank=True)
    # The problem as text and values (`runs.wording`), where it is made of them.
    wording = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    # What a check must find before runs go on, as long as the `run` that found the fault waits:
    # `free_bytes`, `mount` of the base directory's file system, a `privilege`, a `program` that
    # starts. `since` is when it was first found away, `gone` are programs that nobody awaits.
    needs = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    hardware = models.ForeignKey("HardwareProfile", models.PROTECT, null=True)
    environment = models.ForeignKey("Environment", models.PROTECT, null=True)
    # Which machine answered when it was last asked (`runs.execution.machine.identity.Seen`).
    identity = models.JSONField(
        default=dict, db_default=models.Value({}, models.JSONField())
    )
    machine = models.ForeignKey(
        "Machine", models.SET_NULL, null=True, related_name="servers"
    )
    # A person says so: it measures while other registrations of its machine do.
    is_apart = models.BooleanField(default=False, db_default=False)
    # During maintenance no run starts on it; without an end, until a person says so.
    maintenance_since = models.DateTimeField(null=True)
    maintenance_until = models.DateTimeField(null=True)
    maintenance_reason = models.CharField(max_length=200, blank=True)
    # A run that was given up may have left something there.
    needs_sweep = models.BooleanField(default=False)
    # From this moment on a clean-up is due: in the future if the last one left something.
    sweep_after = models.DateTimeField(null=True)
    free_bytes = models.BigIntegerField(
        _("free space in the base directory"), null=True
    )
    # Of its processors in use when no run had it, and by which programs ([name, share], ...); since
    # when each look has found little.
    load_share = models.FloatField(null=True)
    load_programs = models.JSONField(default=list, db_default=[])
    load_at = models.DateTimeField(null=True)
    quiet_since = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            is_one_of("state", ServerState, name="server_state_is_known"),
            models.CheckConstraint(
                name="server_ready_only_with_host_key",
                condition=~models.Q(state="ready") | ~models.Q(host_key=""),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_state_display(self) -> str:  # type: ignore[no-redef]  # by django-stubs
        """As Django's, which asks for the words of all states to find those of one."""
        return str(ServerState(self.state).label)

    @staticmethod
    def not_maintained(path: str = "") -> models.Q:
        """The opposite of `is_maintained`, of rows; `path` leads to their server: "server__"."""
        began, ended = f"{path}maintenance_since", f"{path}maintenance_until__lt"
        return models.Q(**{began: None}) | models.Q(**{ended: Now()})

    @property
    def is_maintained(self) -> bool:
        """No run starts on it."""
        until = self.maintenance_until
        return self.maintenance_since is not None and (
            until is None or until > timezone.now()
        )

    @property
    def was_swept_in_vain(self) -> bool:
        """A clean-up left something that may still run there; the next one comes later."""
        after = self.sweep_after
        return self.needs_sweep and after is not None and after > timezone.now()

    @property
    def away_since(self) -> datetime | None:
        """When it was first found that it cannot be used; None while it can, or of old."""
        since = self.needs.get("since")
        return datetime.fromisoformat(since) if since else None

    def is_away_for(self, span: timedelta) -> bool:
        """Whether it has been out of use for so long."""
        return self.away_since is not None and timezone.now() - self.away_since >= span

    @property
    def is_only_a_hop(self) -> bool:
        """Whether others are reached through it, and nothing runs on it."""
        return not self.base_dir


# The codes of events that inspections found. A list, as migrations write it.
_OF_MACHINE = ["hardware_changed", "environment_changed"]


class ServerEvent(models.Model):
    """Changes of a server's registration, and who made them: keys confirmed, addresses changed.

    Those with a code of OF_MACHINE were found by inspections.
    """

    OF_MACHINE = _OF_MACHINE

    server = models.ForeignKey(Server, models.CASCADE, related_name="events")
    code = models.CharField(max_length=60)
    message = models.TextField(blank=True)
    by = models.CharField(max_length=150, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            # The newest of either kind, of which the other may have thousands.
            models.Index(
                fields=["server", "-at", "-id"],
                condition=models.Q(code__in=_OF_MACHINE),
                name="server_event_of_machine",
            ),
            models.Index(
                fields=["server", "-at", "-id"],
                condition=~models.Q(code__in=_OF_MACHINE),
                name="server_event_of_others",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.at:%Y-%m-%d %H:%M:%S}"


class TopologyKind(models.TextChoices):
    """How servers are arranged; see `Topology.Kind`."""

    SINGLE = "single", _("single server")
    CLIENT = "client", _("database and load generator apart")
    STREAMING = "streaming", _("streaming replication")
    LOGICAL = "logical", _("logical replication")
    FDW = "fdw", _("foreign tables")
    SHARDED = "sharded", _("sharded")
    POOLED = "pooled", _("connection pool")
    VARIED = "varied", _("several arrangements")


class Topology(models.Model):
    """A named arrangement of servers. Its kind says which roles it needs."""

    Kind = TopologyKind

    slug = models.SlugField(max_length=100, unique=True)
    name = models.CharField(_("name"), max_length=200)
    name_ja = models.CharField(max_length=200, blank=True, db_default="", default="")
    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        verbose_name_plural = "topologies"
        constraints = [is_one_of("kind", TopologyKind, name="topology_kind_is_known")]

    def __str__(self) -> str:
        return self.name


class NodeRole(models.TextChoices):
    """What a server is in a topology; see `TopologyNode.Role`."""

    DATABASE = "database", _("database")
    LOAD_GENERATOR = "load_generator", _("load generator")
    CLUSTERS = "clusters", _("further clusters")


class TopologyNode(models.Model):
    """One role in a topology, played by one server."""

    Role = NodeRole

    topology = models.ForeignKey("Topology", models.CASCADE, related_name="nodes")
    server = models.ForeignKey("Server", models.PROTECT, related_name="nodes")
    role = models.CharField(max_length=20, choices=Role)
    ordinal = models.PositiveSmallIntegerField(default=1)

    class Meta:
        ordering = ["topology", "role", "ordinal"]
        constraints = [
            is_one_of("role", NodeRole, name="node_role_is_known"),
            models.UniqueConstraint(
                fields=["topology", "role", "ordinal"], name="node_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.ordinal}"
