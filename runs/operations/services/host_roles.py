"""A joined host's own role in PostgreSQL: what workers need of the tables, and nothing else.

Whoever has the role reads no session, no password and no token, and cannot let itself stay: the
tables of hosts, SSH keys, projects and members it can only read. The role goes when the host
leaves, with its connections.
"""

import secrets

from django.db import connection
from django.utils.translation import gettext as _
from psycopg import sql

from runs.models import (
    HostSecret,
    Invitation,
    Membership,
    Project,
    SSHKey,
    Token,
    Webhook,
    WorkerHost,
)
from runs.shared.errors import ServiceError

# Tables that no worker asks.
CLOSED = frozenset(model._meta.db_table for model in (Token, Invitation))
# Tables that no worker changes.
READ_ONLY = frozenset(
    model._meta.db_table
    for model in (WorkerHost, HostSecret, SSHKey, Project, Membership, Webhook)
)
# Columns of accounts that name a person.
PERSON = ("id", "username", "first_name", "last_name", "is_active")
OWN_TABLES = """
SELECT c.relname, c.relkind FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relname LIKE 'runs\\_%'
    AND c.relkind IN ('r', 'p', 'v', 'm', 'S') ORDER BY c.relname"""
MAY_MAKE_ROLES = """
SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"""


def require_possible() -> None:
    """Raise ServiceError `no_role` where BenchLab's own role may not make others."""
    with connection.cursor() as cursor:
        cursor.execute(MAY_MAKE_ROLES)
        row = cursor.fetchone()
    if row and row[0]:
        return
    message = _("BenchLab's role in PostgreSQL may not make a role for the host.")
    remedy = _("As postgres: ALTER ROLE benchlab CREATEROLE.")
    raise ServiceError("no_role", message, remedy=remedy)


def make(name: str) -> str:
    """Make a role that may log in; its password. In the transaction of the joining."""
    password = secrets.token_urlsafe(24)
    connection.ensure_connection()
    # The server gets no more than what it checks passwords with: its log may have statements.
    verifier = connection.connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    )
    _execute(
        sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
            sql.Identifier(name), sql.Literal(verifier.decode())
        )
    )
    grant(name)
    return password


def grant(name: str) -> None:
    """Let the role use all tables that are there now; again after each migration."""
    role = sql.Identifier(name)
    with connection.cursor() as cursor:
        cursor.execute(OWN_TABLES)
        relations = cursor.fetchall()
    for table, kind in relations:
        if table.removesuffix("_id_seq") in CLOSED:
            continue
        if kind == "S":
            rights, what = "USAGE, SELECT", "SEQUENCE"
        elif table in READ_ONLY:
            rights, what = "SELECT", "TABLE"
        else:
            rights, what = "SELECT, INSERT, UPDATE, DELETE", "TABLE"
        statement = f"GRANT {rights} ON {what} {{}} TO {{}}"
        _execute(sql.SQL(statement).format(sql.Identifier(table), role))
    _execute(sql.SQL("GRANT SELECT ON django_migrations TO {}").format(role))
    columns = sql.SQL(", ").join(map(sql.Identifier, PERSON))
    _execute(sql.SQL("GRANT SELECT ({}) ON auth_user TO {}").format(columns, role))


def grant_all() -> None:
    """After migrations, for the hosts that are there."""
    joined = WorkerHost.objects.filter(joined_at__isnull=False, left_at=None)
    for name in joined.exclude(role="").values_list("role", flat=True):
        grant(name)


def remove(name: str) -> None:
    """Let nobody log in by the role, end its connections, and drop it."""
    role = sql.Identifier(name)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name])
        if cursor.fetchone() is None:
            return
    _execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(role))
    # Who made a role may end its connections and take its rights only as a member of it.
    _execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s",
            [name],
        )
    _execute(sql.SQL("DROP OWNED BY {}").format(role))
    _execute(sql.SQL("DROP ROLE {}").format(role))


def _execute(statement: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
