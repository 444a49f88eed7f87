"""The table of permissions: which role a right needs, and which right an address needs.

`GRANTS` says which role a right needs, and which scope a token needs for it in addition;
`ADDRESSES` says which right each address needs, by method. `runs.selectors.access.permissions`
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
    # Private projects do not exist for others at all: `runs.selectors.access.projects`.
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


# HEAD and OPTIONS count as GET. An address without a rule is an error of `manage.py check`.
ADDRESSES: Mapping[str, Mapping[str, Right]] = {
    "home": _LOOK,
    "search": _LOOK,
    "archive": _LOOK,
    "archive-discrepancies": _LOOK,
    "archive-source": _LOOK,
    "archive-citation": _LOOK,
    "archive-table-citation": _LOOK,
    "archive-figure-citation": _LOOK,
    "archive-data": _LOOK,
    "archive-later": _LOOK,
    "archive-figure": _LOOK,
    "campaign-list": _LOOK,
    "campaign-new": _form(Right.QUEUE),
    "campaign-estimate": {"GET": Right.QUEUE},
    "campaign-preflight": _act(Right.PREFLIGHT),
    "campaign-detail": _LOOK,
    "campaign-cancel": _act(Right.QUEUE),
    "campaign-pause": _act(Right.QUEUE),
    "campaign-resume": _act(Right.QUEUE),
    "campaign-retry": _act(Right.QUEUE),
    "campaign-priority": _act(Right.PRIORITISE),
    "campaign-rounds": _act(Right.QUEUE),
    "campaign-history": _LOOK,
    "change-list": _LOOK,
    "campaign-watch": _act(Right.EXPECT),
    "campaign-badge": _LOOK,
    "campaign-report": _LOOK,
    "campaign-script": _LOOK,
    "campaign-csv": _LOOK,
    "campaign-json": _LOOK,
    "configuration-list": _LOOK,
    "configuration-new": _form(Right.CONFIGURE),
    "configuration-check": _act(Right.OWN),
    "configuration-names": _LOOK,
    "settings-diff": _LOOK,
    "configuration-detail": _LOOK,
    "configuration-edit": _form(Right.CONFIGURE),
    "configuration-file": _LOOK,
    "workload-list": _LOOK,
    "workload-new": _form(Right.CONFIGURE),
    "workload-detail": _LOOK,
    "workload-edit": _form(Right.CONFIGURE),
    "annotation-add": _act(Right.ANNOTATE),
    "annotation-change": _act(Right.ANNOTATE),
    "annotation-delete": _act(Right.ANNOTATE),
    "change-decide": _act(Right.DECIDE),
    "webhook-list": _form(Right.WEBHOOKS),
    "webhook-ping": _act(Right.WEBHOOKS),
    "webhook-remove": _act(Right.WEBHOOKS),
    "plan-viewer": {"GET": Right.LOOK, "POST": Right.OWN},
    "run-detail": _LOOK,
    "run-profile": _LOOK,
    "run-series": _LOOK,
    "run-script": _LOOK,
    "run-retry": _act(Right.QUEUE),
    "run-cancel": _act(Right.QUEUE),
    "run-withdraw": _act(Right.WITHDRAW),
    "run-restore": _act(Right.WITHDRAW),
    "artifact": _LOOK,
    "server-list": _LOOK,
    "server-new": _form(Right.SERVERS),
    "ssh-key-list": _form(Right.SSH_KEYS),
    "ssh-key-delete": _act(Right.SSH_KEYS),
    "server-detail": _LOOK,
    "server-confirm": _act(Right.HOST_KEYS),
    "server-replace-host-key": _act(Right.HOST_KEYS),
    "server-preflight": _act(Right.PREFLIGHT),
    "server-check": {"GET": Right.PREFLIGHT},
    "server-edit": _form(Right.SERVERS),
    "server-delete": _act(Right.SERVERS),
    "server-inspect": _act(Right.MAINTAIN),
    "server-maintain": _act(Right.MAINTAIN),
    "server-release": _act(Right.MAINTAIN),
    "hardware-list": _LOOK,
    "hardware-detail": _LOOK,
    "topology-list": _LOOK,
    "topology-detail": _LOOK,
    "compare": _LOOK,
    "compare-report": _LOOK,
    "compare-cells": _LOOK,
    "compare-why": _list(Right.QUEUE),
    "bisection-new": _form(Right.QUEUE),
    "bisection-detail": _LOOK,
    "bisection-cancel": _act(Right.QUEUE),
    "compare-save": _act(Right.OWN),
    "compare-saved": _LOOK,
    "compare-open": _LOOK,
    "schedule-list": _LOOK,
    "schedule-new": _form(Right.QUEUE),
    "schedule-switch": _act(Right.QUEUE),
    "schedule-delete": _act(Right.QUEUE),
    "observation-list": _LOOK,
    "observation-new": _form(Right.QUEUE),
    "observation-detail": _LOOK,
    "observation-begin": _act(Right.QUEUE),
    "observation-write": _act(Right.ANNOTATE),
    "observation-report": _LOOK,
    "observation-publication": _LOOK,
    "versions": _LOOK,
    "scenario-list": _LOOK,
    "scenario-detail": _LOOK,
    "upload-new": _form(Right.UPLOAD),
    "upload-client": _LOOK,
    "comment-client": _LOOK,
    "token-list": _form(Right.OWN),
    "token-revoke": _act(Right.OWN),
    "audit-list": {"GET": Right.AUDIT},
    "styleguide": _LOOK,
    "project-list": _list(Right.PROJECTS),
    "project-metrics": {"GET": Right.METRICS},
    "project-metric": _form(Right.METRICS),
    "project-people": _form(Right.PEOPLE),
    "project-role": _act(Right.PEOPLE),
    "project-remove": _act(Right.PEOPLE),
    "project-take-back": _act(Right.PEOPLE),
    "invitation": _LOOK,
    "invitation-accept": _act(Right.OWN),
    "login": _form(Right.LOOK),
    "logout": _form(Right.LOOK),
    # Pages of django-allauth, which shows everybody only their own account.
    "account_login": _form(Right.LOOK),
    "account_logout": _form(Right.LOOK),
    "account_inactive": _LOOK,
    "account_signup": _form(Right.LOOK),
    "account_reauthenticate": _form(Right.OWN),
    "account_email": _form(Right.OWN),
    "account_email_verification_sent": _form(Right.LOOK),
    "account_confirm_email": _form(Right.LOOK),
    "account_confirm_login_code": _form(Right.LOOK),
    "account_change_password": _form(Right.OWN),
    "account_set_password": _form(Right.OWN),
    "account_reset_password": _form(Right.LOOK),
    "account_reset_password_done": _LOOK,
    "account_reset_password_from_key": _form(Right.LOOK),
    "account_reset_password_from_key_done": _LOOK,
    "mfa_index": _form(Right.OWN),
    "mfa_authenticate": _form(Right.LOOK),
    "mfa_reauthenticate": _form(Right.OWN),
    "mfa_activate_totp": _form(Right.OWN),
    "mfa_deactivate_totp": _form(Right.OWN),
    "mfa_view_recovery_codes": _form(Right.OWN),
    "mfa_generate_recovery_codes": _form(Right.OWN),
    "mfa_download_recovery_codes": _form(Right.OWN),
    "mfa_list_webauthn": _form(Right.OWN),
    "mfa_add_webauthn": _form(Right.OWN),
    "mfa_reauthenticate_webauthn": _form(Right.OWN),
    "mfa_remove_webauthn": _form(Right.OWN),
    "mfa_edit_webauthn": _form(Right.OWN),
    "mfa_login_webauthn": _form(Right.LOOK),
    "usersessions_list": _form(Right.OWN),
    "socialaccount_login_cancelled": _LOOK,
    "socialaccount_login_error": _LOOK,
    "socialaccount_signup": _form(Right.LOOK),
    "socialaccount_connections": _form(Right.OWN),
    "openid_connect_login": _form(Right.LOOK),
    "openid_connect_callback": _LOOK,
    "set_language": _act(Right.LOOK),
    "healthz": _LOOK,
    "readyz": _LOOK,
    "metrics": {"GET": Right.OPERATE},
    "api:campaign-list": _list(Right.QUEUE),
    "api:campaign-detail": {"GET": Right.LOOK, "PATCH": Right.EXPECT},
    "api:campaign-annotations": _list(Right.ANNOTATE),
    "api:campaign-cancel": _act(Right.QUEUE),
    "api:campaign-pause": _act(Right.QUEUE),
    "api:campaign-resume": _act(Right.QUEUE),
    "api:campaign-retry": _act(Right.QUEUE),
    "api:campaign-priority": _act(Right.PRIORITISE),
    "api:campaign-report": _LOOK,
    "api:campaign-reproduction": _LOOK,
    "api:campaign-plan": _LOOK,
    "api:campaign-rounds": _act(Right.QUEUE),
    "api:change-list": _LOOK,
    "api:change-detail": _LOOK,
    "api:change-decision": _act(Right.DECIDE),
    "api:run-list": _LOOK,
    "api:run-detail": _LOOK,
    "api:run-series": _LOOK,
    "api:run-retry": _act(Right.QUEUE),
    "api:run-withdraw": _act(Right.WITHDRAW),
    "api:run-restore": _act(Right.WITHDRAW),
    "api:measurement-list": _LOOK,
    "api:measurement-detail": _LOOK,
    "api:configuration-list": _list(Right.CONFIGURE),
    "api:configuration-check": _act(Right.OWN),
    "api:configuration-detail": _LOOK,
    "api:hardware-list": _LOOK,
    "api:hardware-detail": _LOOK,
    "api:scenario-list": _LOOK,
    "api:scenario-detail": _LOOK,
    "api:observation-list": _list(Right.QUEUE),
    "api:observation-detail": _LOOK,
    "api:observation-begin": _act(Right.QUEUE),
    "api:schedule-list": _list(Right.QUEUE),
    "api:schedule-detail": {"GET": Right.LOOK, "PATCH": Right.QUEUE, "DELETE": Right.QUEUE},
    "api:schedule-pause": _act(Right.QUEUE),
    "api:schedule-resume": _act(Right.QUEUE),
    "api:server-list": _LOOK,
    "api:server-detail": _LOOK,
    "api:server-maintain": _act(Right.MAINTAIN),
    "api:server-release": _act(Right.MAINTAIN),
    "api:source-list": _LOOK,
    "api:source-detail": _LOOK,
    "api:webhook-list": _form(Right.WEBHOOKS),
    "api:webhook-detail": {
        "GET": Right.WEBHOOKS,
        "PATCH": Right.WEBHOOKS,
        "DELETE": Right.WEBHOOKS,
    },
    "api:webhook-deliveries": {"GET": Right.WEBHOOKS},
    "api:webhook-ping": _act(Right.WEBHOOKS),
    "api:compare": _LOOK,
    "api:compare-why": _list(Right.QUEUE),
    "api:bisection-list": _list(Right.QUEUE),
    "api:bisection-detail": _LOOK,
    "api:bisection-cancel": _act(Right.QUEUE),
    "api:project-export": _LOOK,
    "api:project-import": _act(Right.IMPORT),
    "api:history": _LOOK,
    "api:audit-list": {"GET": Right.AUDIT},
    "api:audit-detail": {"GET": Right.AUDIT},
    "api:preflight": _act(Right.PREFLIGHT),
    "api:preflight-check": {"GET": Right.PREFLIGHT},
    "api:trial": _act(Right.CONFIGURE),
    "api:trial-check": {"GET": Right.CONFIGURE},
    "api:upload": _act(Right.UPLOAD),
    "api:upload-batch": _act(Right.UPLOAD),
    "api:schema": _LOOK,
    "api:docs": _LOOK,
    "api:nowhere": _LOOK,
}
