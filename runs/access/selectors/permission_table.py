"""The table of permissions: which role a right needs, and which scope of a token in addition.

Which right an address needs is said where its view stands (`runs.access.addresses`).
`runs.access.selectors.permissions` applies both.
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
