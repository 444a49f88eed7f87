"""The table of permissions: which role a right needs, and which right an address needs.

`GRANTS` says which role a right needs, and which scope a token needs for it in addition;
`ADDRESSES` says which right each address needs, by method. `runs.access.selectors.permissions`
applies it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from runs.models import Token


class Role(IntEnum):
    """A person's role in a project, from least to most."""

    ANYBODY = 0
    PERSON = 1
    VIEWER = 2
    OPERATOR = 3
    MAINTAINER = 4
    ADMINISTRATOR = 5


class Right(StrEnum):
    """An action that needs permission."""

    LOOK = "look"
    OWN = "own"
    ANNOTATE = "annotate"
    CONFIGURE = "configure"
    DECIDE = "decide"
    PREFLIGHT = "preflight"
    QUEUE = "queue"
    UPLOAD = "upload"
    AUDIT = "audit"
    EXPECT = "expect"
    IMPORT = "import"
    IMPORT_EXECUTED = "import executed"
    MAINTAIN = "maintain"
    METRICS = "metrics"
    PEOPLE = "people"
    PRIORITISE = "prioritise"
    UPLOAD_FOR_SERVER = "upload for server"
    WEBHOOKS = "webhooks"
    WITHDRAW = "withdraw"
    HOST_KEYS = "host keys"
    OPERATE = "operate"
    PROJECTS = "projects"
    SERVERS = "servers"
    SSH_KEYS = "SSH keys"


@dataclass(frozen=True)
class Grant:
    """What a right needs: at least this role, and this scope of a token."""

    role: Role
    scope: Token.Scope


_SCOPE = Token.Scope
GRANTS: Mapping[Right, Grant] = {
    # Private projects do not exist for others at all: `runs.access.selectors.projects`.
    Right.LOOK: Grant(Role.ANYBODY, _SCOPE.READ),
    # A person's own account, tokens and saved comparisons.
    Right.OWN: Grant(Role.PERSON, _SCOPE.READ),
    Right.ANNOTATE: Grant(Role.OPERATOR, _SCOPE.QUEUE),
    Right.CONFIGURE: Grant(Role.OPERATOR, _SCOPE.QUEUE),
    Right.DECIDE: Grant(Role.OPERATOR, _SCOPE.UPLOAD),
    Right.PREFLIGHT: Grant(Role.OPERATOR, _SCOPE.QUEUE),
    Right.QUEUE: Grant(Role.OPERATOR, _SCOPE.QUEUE),
    Right.UPLOAD: Grant(Role.OPERATOR, _SCOPE.UPLOAD),
    Right.AUDIT: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    Right.EXPECT: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    Right.IMPORT: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    # Figures of machines elsewhere, shown as imported next to those that BenchLab measured itself.
    Right.IMPORT_EXECUTED: Grant(Role.MAINTAINER, _SCOPE.SERVER),
    Right.MAINTAIN: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    # Unit, direction and title of what the project's uploads measure.
    Right.METRICS: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    Right.PEOPLE: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    # Servers are shared: the operators of one project must not decide who goes first.
    Right.PRIORITISE: Grant(Role.MAINTAINER, _SCOPE.QUEUE),
    # Figures shown together with those that BenchLab measured on that machine itself.
    Right.UPLOAD_FOR_SERVER: Grant(Role.MAINTAINER, _SCOPE.SERVER),
    Right.WEBHOOKS: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    Right.WITHDRAW: Grant(Role.MAINTAINER, _SCOPE.ADMIN),
    # What BenchLab logs in to, and as which user.
    Right.HOST_KEYS: Grant(Role.ADMINISTRATOR, _SCOPE.ADMIN),
    # What monitoring reads about all projects together: a scope that allows nothing else, so that
    # its token reads no results, and no other token reads this.
    Right.OPERATE: Grant(Role.ADMINISTRATOR, _SCOPE.MONITOR),
    Right.PROJECTS: Grant(Role.ADMINISTRATOR, _SCOPE.ADMIN),
    Right.SERVERS: Grant(Role.ADMINISTRATOR, _SCOPE.ADMIN),
    Right.SSH_KEYS: Grant(Role.ADMINISTRATOR, _SCOPE.ADMIN),
}

_LOOK = {"GET": Right.LOOK}


def _form(right: Right) -> dict[str, Right]:
    return {"GET": right, "POST": right}


def _act(right: Right) -> dict[str, Right]:
    return {"POST": right}


def _list(right: Right) -> dict[str, Right]:
    return {"GET": Right.LOOK, "POST": right}


# Pages of django-allauth, which shows everybody only their own account.
_LOGINS = (
    *("account_login", "account_logout", "account_signup", "account_email_verification_sent"),
    *("account_confirm_email", "account_confirm_login_code", "account_reset_password"),
    *("account_reset_password_from_key", "mfa_authenticate", "mfa_login_webauthn"),
    *("socialaccount_signup", "openid_connect_login"),
)
_OWN_ACCOUNT = (
    *("account_reauthenticate", "account_email", "account_change_password"),
    *("account_set_password", "mfa_index", "mfa_reauthenticate", "mfa_activate_totp"),
    *("mfa_deactivate_totp", "mfa_view_recovery_codes", "mfa_generate_recovery_codes"),
    *("mfa_download_recovery_codes", "mfa_list_webauthn", "mfa_add_webauthn"),
    *("mfa_reauthenticate_webauthn", "mfa_remove_webauthn", "mfa_edit_webauthn"),
    *("usersessions_list", "socialaccount_connections"),
)
# What everybody may look at, of projects that they may see. All other addresses are below.
_LOOKED_AT = (
    *("home", "search", "archive", "archive-discrepancies", "archive-source", "archive-citation"),
    *("archive-table-citation", "archive-figure-citation", "archive-data", "archive-later"),
    *("archive-figure", "campaign-list", "campaign-detail", "campaign-history", "campaign-badge"),
    *("campaign-report", "campaign-script", "campaign-csv", "campaign-json", "change-list"),
    *("configuration-list", "configuration-names", "configuration-detail", "configuration-file"),
    *("settings-diff", "workload-list", "workload-detail", "run-detail", "run-profile"),
    *("run-series", "run-script", "artifact", "server-list", "server-detail", "hardware-list"),
    *("hardware-detail", "topology-list", "topology-detail", "compare", "compare-report"),
    *("compare-cells", "compare-saved", "compare-open", "bisection-detail", "schedule-list"),
    *("observation-list", "observation-detail", "observation-report", "observation-publication"),
    *("versions", "scenario-list", "scenario-detail", "upload-client", "comment-client"),
    *("styleguide", "invitation", "account_inactive", "account_reset_password_done"),
    *("account_reset_password_from_key_done", "socialaccount_login_cancelled"),
    *("socialaccount_login_error", "openid_connect_callback", "healthz", "readyz"),
    *("api:campaign-report", "api:campaign-reproduction", "api:campaign-plan", "api:change-list"),
    *("api:change-detail", "api:run-list", "api:run-detail", "api:run-series"),
    *("api:measurement-list", "api:measurement-detail", "api:configuration-detail"),
    *("api:hardware-list", "api:hardware-detail", "api:scenario-list", "api:scenario-detail"),
    *("api:observation-detail", "api:server-list", "api:server-detail", "api:source-list"),
    *("api:source-detail", "api:compare", "api:bisection-detail", "api:project-export"),
    *("api:history", "api:schema", "api:docs", "api:nowhere"),
)

# What pages and the API do alike.
_ACTIONS = {
    "campaign-cancel": _act(Right.QUEUE),
    "campaign-pause": _act(Right.QUEUE),
    "campaign-resume": _act(Right.QUEUE),
    "campaign-retry": _act(Right.QUEUE),
    "campaign-priority": _act(Right.PRIORITISE),
    "campaign-rounds": _act(Right.QUEUE),
    "run-retry": _act(Right.QUEUE),
    "run-withdraw": _act(Right.WITHDRAW),
    "run-restore": _act(Right.WITHDRAW),
    "configuration-check": _act(Right.OWN),
    "observation-begin": _act(Right.QUEUE),
    "server-maintain": _act(Right.MAINTAIN),
    "server-release": _act(Right.MAINTAIN),
    "webhook-list": _form(Right.WEBHOOKS),
    "webhook-ping": _act(Right.WEBHOOKS),
    "compare-why": _list(Right.QUEUE),
    "bisection-cancel": _act(Right.QUEUE),
    "audit-list": {"GET": Right.AUDIT},
}

# HEAD and OPTIONS count as GET. An address without a rule is an error of `manage.py check`.
ADDRESSES: Mapping[str, Mapping[str, Right]] = {
    **dict.fromkeys(_LOOKED_AT, _LOOK),
    **_ACTIONS,
    **{f"api:{name}": rights for name, rights in _ACTIONS.items()},
    "campaign-new": _form(Right.QUEUE),
    "campaign-estimate": {"GET": Right.QUEUE},
    "campaign-preflight": _act(Right.PREFLIGHT),
    "campaign-watch": _act(Right.EXPECT),
    "configuration-new": _form(Right.CONFIGURE),
    "configuration-edit": _form(Right.CONFIGURE),
    "workload-new": _form(Right.CONFIGURE),
    "workload-edit": _form(Right.CONFIGURE),
    "annotation-add": _act(Right.ANNOTATE),
    "annotation-change": _act(Right.ANNOTATE),
    "annotation-delete": _act(Right.ANNOTATE),
    "change-decide": _act(Right.DECIDE),
    "webhook-remove": _act(Right.WEBHOOKS),
    "plan-viewer": {"GET": Right.LOOK, "POST": Right.OWN},
    "run-cancel": _act(Right.QUEUE),
    "server-new": _form(Right.SERVERS),
    "ssh-key-list": _form(Right.SSH_KEYS),
    "ssh-key-delete": _act(Right.SSH_KEYS),
    "server-confirm": _act(Right.HOST_KEYS),
    "server-replace-host-key": _act(Right.HOST_KEYS),
    "server-preflight": _act(Right.PREFLIGHT),
    "server-check": {"GET": Right.PREFLIGHT},
    "server-edit": _form(Right.SERVERS),
    "server-delete": _act(Right.SERVERS),
    "server-inspect": _act(Right.MAINTAIN),
    "bisection-new": _form(Right.QUEUE),
    "compare-save": _act(Right.OWN),
    "schedule-new": _form(Right.QUEUE),
    "schedule-switch": _act(Right.QUEUE),
    "schedule-delete": _act(Right.QUEUE),
    "observation-new": _form(Right.QUEUE),
    "observation-write": _act(Right.ANNOTATE),
    "upload-new": _form(Right.UPLOAD),
    "token-list": _form(Right.OWN),
    "token-revoke": _act(Right.OWN),
    "project-list": _list(Right.PROJECTS),
    "project-metrics": {"GET": Right.METRICS},
    "project-metric": _form(Right.METRICS),
    "project-people": _form(Right.PEOPLE),
    "project-role": _act(Right.PEOPLE),
    "project-remove": _act(Right.PEOPLE),
    "project-take-back": _act(Right.PEOPLE),
    "invitation-accept": _act(Right.OWN),
    "login": _form(Right.LOOK),
    "logout": _form(Right.LOOK),
    **dict.fromkeys(_LOGINS, _form(Right.LOOK)),
    **dict.fromkeys(_OWN_ACCOUNT, _form(Right.OWN)),
    "set_language": _act(Right.LOOK),
    "metrics": {"GET": Right.OPERATE},
    "api:campaign-list": _list(Right.QUEUE),
    "api:campaign-detail": {"GET": Right.LOOK, "PATCH": Right.EXPECT},
    "api:campaign-annotations": _list(Right.ANNOTATE),
    "api:change-decision": _act(Right.DECIDE),
    "api:configuration-list": _list(Right.CONFIGURE),
    "api:observation-list": _list(Right.QUEUE),
    "api:schedule-list": _list(Right.QUEUE),
    "api:schedule-detail": {"GET": Right.LOOK, "PATCH": Right.QUEUE, "DELETE": Right.QUEUE},
    "api:schedule-pause": _act(Right.QUEUE),
    "api:schedule-resume": _act(Right.QUEUE),
    "api:webhook-detail": dict.fromkeys(("GET", "PATCH", "DELETE"), Right.WEBHOOKS),
    "api:webhook-deliveries": {"GET": Right.WEBHOOKS},
    "api:bisection-list": _list(Right.QUEUE),
    "api:project-import": _act(Right.IMPORT),
    "api:audit-detail": {"GET": Right.AUDIT},
    "api:preflight": _act(Right.PREFLIGHT),
    "api:preflight-check": {"GET": Right.PREFLIGHT},
    "api:trial": _act(Right.CONFIGURE),
    "api:trial-check": {"GET": Right.CONFIGURE},
    "api:upload": _act(Right.UPLOAD),
    "api:upload-batch": _act(Right.UPLOAD),
}
