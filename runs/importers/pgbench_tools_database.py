"""pgbench-tools: its database of results, over a connection (postgresql://...)."""

import psycopg
from psycopg.rows import dict_row

from runs.importers.pgbench_tools import TABLES, Tables, read_tables
from runs.importers.row import Imported, NotTheirs
from runs.wording import Marked

SCHEMES = ("postgresql:", "postgres:")


def read(address: str) -> Imported:
    """Read the database. Raises NotTheirs."""
    return read_tables(_tables(address))


def _tables(address: str) -> Tables:
    tables: Tables = {}
    try:
        with psycopg.connect(address, client_encoding="utf8") as connection:
            connection.read_only = True
            cursor = connection.cursor(row_factory=dict_row)
            for table in TABLES:
                there = cursor.execute(
                    "SELECT to_regclass(%s) AS name", (table,)
                ).fetchone()
                if there and there["name"]:
                    cursor.execute(
                        psycopg.sql.SQL("SELECT * FROM {}").format(
                            psycopg.sql.Identifier(table)
                        )
                    )
                    tables[table] = cursor.fetchall()
    except psycopg.Error as error:
        raise NotTheirs(Marked("%(error)s"), error=str(error).strip()) from error
    return tables
