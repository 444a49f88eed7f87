"""Settings, read from the environment. A missing or malformed value fails loudly at start.

`script/server` keeps the values of its instance in `<BENCHLAB_VAR>/environment`, so that
`manage.py` run by hand serves that same instance.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

import plotly
from django.utils.translation import gettext_lazy as _
from kombu import Queue
from whitenoise.compress import Compressor

from benchlab.database.patience import PatientConnection
from benchlab.environment import Environment

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"][
    "version"
]
env = Environment()
_OF_PROCESS = frozenset(os.environ)

VAR_DIR = Path(env.str("BENCHLAB_VAR", default=str(BASE_DIR / "var"))).resolve()
# What the process' environment has goes before what is kept in the file.
if (VAR_DIR / "environment").exists():
    Environment.read_env(VAR_DIR / "environment")

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# Encrypts private SSH keys at rest; kept outside the results database.
ENCRYPTION_KEY = env.str("BENCHLAB_ENCRYPTION_KEY", default="")

# Signs the seals of runs; stored outside the results database too, and created if missing.
SEAL_KEY = env.str("BENCHLAB_SEAL_KEY", default=str(VAR_DIR / "seals" / "ed25519.pem"))

# What encrypts and authenticates backups.
BACKUP_PASSPHRASE = env.str("BENCHLAB_BACKUP_PASSPHRASE", default="")
# Of a daily backup with some patience; 0 where something else makes backups.
BACKUP_HOURS = env.int("BENCHLAB_BACKUP_HOURS", default=36)
# Whether benchmarks on this machine run in the account that has these secrets; script/server says.
SHARED_ACCOUNT = env.bool("BENCHLAB_SHARED_ACCOUNT", default=False)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "benchlab.static_files.StaticFiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "runs",
]

MIDDLEWARE = [
    "benchlab.logs.number_requests",
    "django.middleware.security.SecurityMiddleware",
    "benchlab.middleware.content_security_policy",
    "benchlab.middleware.keep_private",
    "benchlab.middleware.refuse_nul",
    "benchlab.middleware.end_with_slash",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "benchlab.middleware.Compress",
    "benchlab.statement_limits.LimitStatements",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "benchlab.middleware.limit_pages",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "runs.access.views.logins.Gate",
]

ROOT_URLCONF = "benchlab.urls"
WSGI_APPLICATION = "benchlab.wsgi.application"

# What Django has with APP_DIRS: a file is compiled once in a process.
_KEPT_TEMPLATES = (
    "django.template.loaders.cached.Loader",
    [
        "django.template.loaders.filesystem.Loader",
        "django.template.loaders.app_directories.Loader",
    ],
)
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            # Parts of a file ("components.html#badge"). Django 6.0 has them without these two.
            "builtins": ["template_partials.templatetags.partials"],
            "loaders": [("template_partials.loader.Loader", [_KEPT_TEMPLATES])],
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runs.shared.pages.context",
            ],
        },
    },
]

# The most connections to the database of one process, whose threads share them; 0: one a thread.
DATABASE_POOL = env.int("BENCHLAB_DATABASE_POOL", default=6)
# PgBouncer lends a connection for one transaction: nothing may be kept in a session, as limits of
# statements or open cursors.
PGBOUNCER = env.bool("BENCHLAB_PGBOUNCER", default=False)
# A network that is cut in the middle of a statement is noticed, and not waited for.
_PATIENCE = {"connect_timeout": 5, "keepalives_idle": 10, "tcp_user_timeout": 15_000}
# Seconds that a request waits for a connection: it takes that of another one, or a new one. A pool
# that cannot connect gives up soon and tries with the next request: else it would wait ever longer,
# up to five minutes, also when the database is there again.
_SIZE = {"min_size": 1, "max_size": DATABASE_POOL, "timeout": 8, "reconnect_timeout": 3}
_POOL = (
    {"pool": {**_SIZE, "connection_class": PatientConnection}} if DATABASE_POOL else {}
)


def _plans(options: str) -> dict[str, Any]:
    """Statements of `DatabaseWrapper.prepared_cursor`, and no others, are planned once.

    Else PostgreSQL would plan those with arrays anew each time, which takes longer than they do:
    https://www.postgresql.org/docs/current/runtime-config-query.html#GUC-PLAN-CACHE-MODE
    """
    if PGBOUNCER:
        return {"prepare_threshold": None}
    plan_once = f"{options} -c plan_cache_mode=force_generic_plan".strip()
    return {"prepare_threshold": 0, "options": plan_once}


def _database(url: dict[str, Any]) -> dict[str, Any]:
    options = url.get("OPTIONS", {})
    return {
        **url,
        "ENGINE": "benchlab.database",
        "CONN_MAX_AGE": 0 if _POOL else env.int("DATABASE_CONN_MAX_AGE", default=60),
        "CONN_HEALTH_CHECKS": not _POOL,  # the engine looks at those of a pool
        "DISABLE_SERVER_SIDE_CURSORS": PGBOUNCER,
        "OPTIONS": {
            **_PATIENCE,
            **options,
            **_plans(options.get("options", "")),
            **_POOL,
        },
    }


DATABASES = {
    "default": _database(
        env.db("DATABASE_URL", default="postgresql://benchlab@127.0.0.1:5432/benchlab")
    )
}
# A streaming standby that pages and reads of the API are read from: see benchlab.replica.
if _replica := env.db("DATABASE_REPLICA_URL", default=""):
    DATABASES["replica"] = {**_database(_replica), "TEST": {"MIRROR": "default"}}
    # What does not answer is not waited for: the primary has it all.
    DATABASES["replica"]["OPTIONS"] |= {"connect_timeout": 2}
    if _POOL:
        DATABASES["replica"]["OPTIONS"]["pool"] = {**_POOL["pool"], "timeout": 2}
    DATABASE_ROUTERS = ["benchlab.replica.Router"]
    _before = MIDDLEWARE.index("django.contrib.sessions.middleware.SessionMiddleware")
    MIDDLEWARE.insert(_before, "benchlab.replica.ReadReplica")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.redis("REDIS_URL", default="redis://127.0.0.1:6379/0")

CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
# Runs wait for hours on their targets: what control does has a queue and a worker of its own.
# A worker without --queues serves both.
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_QUEUES = [Queue(queue, routing_key=queue) for queue in ("control", "runs")]
# What waits for machines goes to those who have threads to wait, however silent they are.
CELERY_TASK_ROUTES = {
    task: {"queue": "runs"} for task in ("runs.execute_next", "runs.check_servers")
}
# On a host that joined another one (`runs.operations.services.hosts`): its number and name there.
WORKER_HOST = env.int("BENCHLAB_WORKER_HOST", default=0)
HOST_NAME = env.str("BENCHLAB_HOST_NAME", default="")
# The sites whose servers this worker reaches, besides servers without a site.
SITES = env.slugs("BENCHLAB_SITES")
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A Redis that is full, or a replica after a failover, ends no worker: what it measures goes on.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

# A worker shows a sign of life this often; after the second time a run counts as lost.
HEARTBEAT_SECONDS = env.float("BENCHLAB_HEARTBEAT_SECONDS", default=2.0)
HEARTBEAT_TIMEOUT_SECONDS = env.float(
    "BENCHLAB_HEARTBEAT_TIMEOUT_SECONDS", default=20.0
)
SUPERVISE_SECONDS = env.float("BENCHLAB_SUPERVISE_SECONDS", default=5.0)
# How often reports that wait, histories that wait and uploads that stay away are looked for.
WATCH_SECONDS = env.float("BENCHLAB_WATCH_SECONDS", default=15.0)
# How long a loaded cluster stays on its server for a next campaign, and how much all may take.
KEPT_CLUSTERS_HOURS = env.amount("BENCHLAB_KEPT_CLUSTERS_HOURS", default=6.0)
KEPT_CLUSTERS_GB = env.amount("BENCHLAB_KEPT_CLUSTERS_GB", default=20.0)
# Of dumps that are uploaded for loads: the largest, which may unpack to ten times as much, and all.
LOAD_DUMP_MB = env.amount("BENCHLAB_LOAD_DUMP_MB", default=300.0)
LOAD_DUMPS_MB = env.amount("BENCHLAB_LOAD_DUMPS_MB", default=3000.0)
# How often a run is started again after its target lost it (a restart of the target).
MAXIMUM_ATTEMPTS = env.int("BENCHLAB_MAXIMUM_ATTEMPTS", default=3)

# Files of runs: in the folder, or in a bucket, which the folder's go to.
ARTIFACTS_DIR = VAR_DIR / "artifacts"
# Data files of the instance's own publications, beside those of the repository.
PUBLICATIONS_DIR = VAR_DIR / "publications"
ARTIFACTS_BUCKET = env.bucket("BENCHLAB_ARTIFACTS")
# Read by django-storages. Without them boto3 looks in its own places, as the role of a machine.
AWS_ACCESS_KEY_ID = env.str("AWS_ACCESS_KEY_ID", default="")
AWS_SECRET_ACCESS_KEY = env.str("AWS_SECRET_ACCESS_KEY", default="")
# After how many days what is removed by `manage.py retain`; what has no number is kept.
RETENTION = env.days("BENCHLAB_RETENTION")

# Counters of requests. Redis is the broker's as well: never clear the complete cache.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "benchlab",
        "OPTIONS": {
            "serializer": "benchlab.cache.JSONSerializer",
            "socket_connect_timeout": 1,
            "socket_timeout": 1,
        },
    }
}
# Requests to the API a minute, and as many pages, of one address without a login and of one token
# or user; 0 means no limit.
# Whether a run that its certificate calls invalid is left out by rule, or counts and is marked.
LEAVE_OUT_INVALID = env.bool("BENCHLAB_LEAVE_OUT_INVALID", default=True)
RATE_ANONYMOUS = env.int("BENCHLAB_RATE_ANONYMOUS", default=600)
RATE_TOKEN = env.int("BENCHLAB_RATE_TOKEN", default=6000)
# What /metrics and the reasons of /readyz are asked with when the database cannot say who asks.
MONITOR_TOKEN = env.str("BENCHLAB_MONITOR_TOKEN", default="")

# The site's own address, for links in webhooks and mails: https://benchlab.example
PUBLIC_URL = env.str("BENCHLAB_URL", default="")
# Sites whose pages may frame charts, and read what everybody may read: * for all.
EMBED_ORIGINS = env.origins("BENCHLAB_EMBED_ORIGINS")
# Webhooks reach public addresses only, unless this is set: a lab may be its own network.
WEBHOOK_ALLOW_PRIVATE = env.bool("BENCHLAB_WEBHOOK_ALLOW_PRIVATE", default=False)
# Scripts of people's own run programs on a server only where this is set.
ALLOW_SHELL_SCRIPTS = env.bool("BENCHLAB_ALLOW_SHELL_SCRIPTS", default=False)
# Mails about changes are sent if this is set: smtp+tls://user:password@host:587
EMAIL_URL = env.mail("EMAIL_URL", default="")
SENDS_MAIL = bool(EMAIL_URL)
_MAIL = env.email_url_config(EMAIL_URL or "dummymail://")
EMAIL_BACKEND = _MAIL["EMAIL_BACKEND"]
EMAIL_HOST, EMAIL_PORT = _MAIL["EMAIL_HOST"] or "localhost", _MAIL["EMAIL_PORT"] or 25
EMAIL_HOST_USER = _MAIL["EMAIL_HOST_USER"] or ""
EMAIL_HOST_PASSWORD = _MAIL["EMAIL_HOST_PASSWORD"] or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = (
    bool(_MAIL.get(f"EMAIL_USE_{protocol}")) for protocol in ("TLS", "SSL")
)
EMAIL_TIMEOUT = 15
DEFAULT_FROM_EMAIL = env.str("BENCHLAB_MAIL_FROM", default="benchlab@localhost")

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ja", _("Japanese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.time_zone("TIME_ZONE", default="UTC")

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [
    BASE_DIR / "static",
    # plotly.min.js comes with the Python package: no CDN and no copy in the repository.
    ("plotly", Path(plotly.__file__).parent / "package_data"),
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
# Maps of sources are as large as all the rest, and are read by nobody but its developers.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")

# Who runs this site, and under which licence its own figures may be used: what help says of it.
OPERATOR = env.str("BENCHLAB_OPERATOR", default="")
DATA_LICENCE = env.str("BENCHLAB_DATA_LICENCE", default="")

# Served over TLS by a proxy in front: set BENCHLAB_TLS=1 there.
TLS = env.bool("BENCHLAB_TLS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TLS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TLS else None
SECURE_SSL_REDIRECT = TLS
# Asked from the machine itself, past the proxy.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)/?$"]
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if TLS else 0
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
# Whether all of a domain uses TLS is its owner's decision, not that of one site.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# Accounts. Logins that fail are limited to 5 in five minutes a name and 10 a minute an address.
ACCOUNT_ADAPTER = "runs.access.views.logins.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_FORMS = {"signup": "runs.access.views.logins.SignupForm"}
ACCOUNT_EMAIL_VERIFICATION = "optional" if SENDS_MAIL else "none"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "BenchLab: "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if TLS else "http"
ACCOUNT_LOGOUT_REDIRECT_URL = "home"
ALLAUTH_TRUSTED_PROXY_COUNT = env.int("BENCHLAB_PROXIES", default=1 if TLS else 0)
# Without mails no address is ever confirmed, and nobody could add a second factor.
MFA_ALLOW_UNVERIFIED_EMAIL = not SENDS_MAIL
MFA_ADAPTER = "runs.access.views.logins.MFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "BenchLab"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not TLS
# A login elsewhere by OpenID Connect: https://idp.example/realms/lab and what it calls us.
OPENID_ISSUER = env.str("BENCHLAB_OIDC_ISSUER", default="")
# Whoever the provider lets in gets an account, without a role anywhere.
OPENID_SIGN_UP = env.bool("BENCHLAB_OIDC_SIGN_UP", default=False)
SOCIALACCOUNT_ADAPTER = "runs.access.views.logins.SocialAccountAdapter"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": env.str("BENCHLAB_OIDC_NAME", default="OpenID Connect"),
                "client_id": env.str("BENCHLAB_OIDC_CLIENT_ID", default=""),
                "secret": env.str("BENCHLAB_OIDC_CLIENT_SECRET", default=""),
                "settings": {"server_url": OPENID_ISSUER},
            }
        ]
        if OPENID_ISSUER
        else [],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_PERMISSION_CLASSES": ["runs.access.api.authentication.TablePermission"],
    # The first one's challenge is that of a 401.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "runs.access.api.authentication.BearerAuthentication",
        "runs.access.api.authentication.CookieAuthentication",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["runs.shared.api.rate_limit.RateLimit"],
    # How many proxies in front may be believed what they say of an address.
    "NUM_PROXIES": env.int("BENCHLAB_PROXIES", default=1 if TLS else 0),
    "DEFAULT_RENDERER_CLASSES": ["runs.shared.api.rendering.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["runs.shared.api.parsing.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "runs.shared.api.parsing.KnownFormats",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "runs.shared.api.pagination.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "runs.shared.api.errors.problem_json",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
FILTERS_EMPTY_CHOICE_LABEL = _("all")
SPECTACULAR_SETTINGS = {
    "TITLE": "BenchLab API",
    "DESCRIPTION": "The lab and the archive of record for PostgreSQL performance.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "runs.uploads.api.description.texts_stand_for_objects",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "BisectionState": "runs.models.bisections.Bisection.State",
        "CampaignState": "runs.models.campaigns.Campaign.State",
        "CheckState": "runs.models.server_checks.ServerCheckState",
        "RunState": "runs.models.runs.Run.State",
        "SealKind": "runs.models.seals.Seal.Kind",
        "ScheduleKind": "runs.models.schedules.Schedule.Kind",
        "ServerState": "runs.models.servers.Server.State",
        "FindingWeight": "runs.analysis.certificate.WEIGHTS",
        "DiscrepancyKind": "runs.models.sources.Discrepancy.Kind",
        "DiscrepancyWeight": "runs.models.sources.WEIGHTS",
        "Verdict": "runs.analysis.inference.verdicts.VERDICTS",
        "WebhookKind": "runs.models.changes.WebhookKind",
    },
}

# Lines for people, or JSON objects with request and run for programs; those have each request.
LOG_FORMAT = env.one_of("BENCHLAB_LOG_FORMAT", ("line", "json"), default="line")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"context": {"()": "benchlab.logs.Context"}},
    "formatters": {
        "line": {
            "format": "{asctime} {levelname} {name}: {of_run}{message}",
            "style": "{",
        },
        "json": {"()": "benchlab.logs.JSONFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["context"],
        }
    },
    "root": {
        "handlers": ["console"],
        "level": env.one_of("LOG_LEVEL", LEVELS, default="INFO"),
    },
    # asyncssh logs each channel at INFO; one line a command is too much for a 48-hour run.
    "loggers": {
        "asyncssh": {"level": "WARNING"},
        "benchlab.requests": {"level": "INFO" if LOG_FORMAT == "json" else "WARNING"},
    },
}

# The variables that are set, and whether the process' environment has them: `doctor` says it.
SETTINGS_SET = {
    name: name in _OF_PROCESS
    for name in sorted(env.names)
    if os.environ.get(name, "").strip()
}
