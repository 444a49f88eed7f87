"""What the database of a run has, by kind and name, with its definition: so that whatever differs
between two runs is a difference.

One table: each kind with its first version and the query of `name` and `value`. A kind that a
version does not have, or whose query fails, is missing from the record; one without objects is
empty.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_OBJECTS, MOST_CHARACTERS = 300, 2000


class Kind(NamedTuple):
    """A kind of object: since which version it is read, and how."""

    since: int
    query: str


# Written out in each query.
_PARTS = {
    "USER_CLASSES": "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND USER_SCHEMAS",
    "USER_SCHEMAS": (
        "n.nspname NOT IN ('pg_catalog', 'information_schema') "
        r"AND n.nspname NOT LIKE 'pg\_toast%' AND n.nspname NOT LIKE 'pg\_temp%'"
    ),
}
# `row_to_json(c)->>'x'` is null where a version lacks the column.
KINDS: Mapping[str, Kind] = {
    "relation": Kind(
        0,
        """SELECT c.relname, concat_ws(' ', CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED' END,
            CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'f' THEN 'FOREIGN TABLE'
                WHEN 'p' THEN 'PARTITIONED TABLE' ELSE 'TABLE' END,
            array_to_string(c.reloptions, ', '),
            CASE WHEN row_to_json(c)->>'relrowsecurity' = 'true' THEN 'ROW SECURITY' END,
            (SELECT 'TABLESPACE ' || spcname FROM pg_tablespace s WHERE s.oid = c.reltablespace))
        FROM USER_CLASSES WHERE c.relkind IN ('r', 'm', 'f', 'p')""",
    ),
    "index": Kind(
        0,
        """SELECT c.relname, concat_ws(' ', pg_get_indexdef(c.oid),
            CASE WHEN NOT i.indisvalid THEN 'INVALID' END)
        FROM USER_CLASSES JOIN pg_index i ON i.indexrelid = c.oid""",
    ),
    "column": Kind(
        0,
        """SELECT c.relname || '.' || a.attname, concat_ws(' ',
            format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
            (SELECT 'COLLATE ' || l.collname FROM pg_collation l
                WHERE l.oid = a.attcollation AND a.attcollation <> t.typcollation),
            CASE WHEN a.attstorage <> t.typstorage THEN 'STORAGE ' || a.attstorage::text END,
            CASE WHEN coalesce(a.attstattarget, -1) >= 0
                THEN 'STATISTICS ' || a.attstattarget::text END,
            CASE WHEN row_to_json(a)->>'attcompression' <> ''
                THEN 'COMPRESSION ' || (row_to_json(a)->>'attcompression') END,
            array_to_string(a.attoptions, ', '),
            (SELECT 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
                WHERE d.adrelid = c.oid AND d.adnum = a.attnum))
        FROM USER_CLASSES JOIN pg_attribute a ON a.attrelid = c.oid
            JOIN pg_type t ON t.oid = a.atttypid
        WHERE c.relkind IN ('r', 'm', 'f', 'p') AND a.attnum > 0 AND NOT a.attisdropped""",
    ),
    "constraint": Kind(
        0,
        """SELECT c.relname || '.' || o.conname,
            concat_ws(' ', pg_get_constraintdef(o.oid), CASE WHEN NOT o.convalidated
                THEN 'NOT VALID' END)
        FROM USER_CLASSES JOIN pg_constraint o ON o.conrelid = c.oid
        WHERE o.contype IN ('f', 'c', 'x', 't')""",
    ),
    "trigger": Kind(
        0,
        """SELECT c.relname || '.' || g.tgname,
            concat_ws(' ', pg_get_triggerdef(g.oid), nullif(g.tgenabled::text, 'O'))
        FROM USER_CLASSES JOIN pg_trigger g ON g.tgrelid = c.oid WHERE NOT g.tgisinternal
        UNION ALL SELECT c.relname || '.' || w.rulename, pg_get_ruledef(w.oid)
        FROM USER_CLASSES JOIN pg_rewrite w ON w.ev_class = c.oid WHERE c.relkind IN ('r', 'p')
        UNION ALL SELECT evtname, evtevent FROM pg_event_trigger""",
    ),
    "function": Kind(
        0,
        """SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
            concat_ws(' ', l.lanname, p.provolatile::text, 'COST ' || p.procost,
                'ROWS ' || p.prorows, 'PARALLEL ' || (row_to_json(p)->>'proparallel'),
                array_to_string(p.proconfig, ', '), md5(p.prosrc))
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace AND USER_SCHEMAS
            JOIN pg_language l ON l.oid = p.prolang
        WHERE NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid
            AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')""",
    ),
    "sequence": Kind(
        100000,
        """SELECT c.relname, concat_ws(' ', 'CACHE', s.seqcache, 'INCREMENT', s.seqincrement)
        FROM USER_CLASSES JOIN pg_sequence s ON s.seqrelid = c.oid""",
    ),
    "statistics": Kind(
        100000,
        """SELECT stxname, concat_ws(' ', stxrelid::regclass::text, stxkeys::text,
            array_to_string(stxkind, ''))
        FROM pg_statistic_ext""",
    ),
    "freshness": Kind(
        0,
        """SELECT c.relname, concat_ws(', ',
            (SELECT count(DISTINCT s.staattnum) FROM pg_statistic s WHERE s.starelid = c.oid)
                || ' columns with statistics',
            CASE WHEN c.relallvisible < c.relpages * 0.1 THEN 'visibility map empty'
                WHEN c.relallvisible < c.relpages * 0.9 THEN 'visibility map partly set'
                ELSE 'visibility map set' END)
        FROM USER_CLASSES WHERE c.relkind IN ('r', 'm') AND c.relpages > 10""",
    ),
    "extension": Kind(0, "SELECT extname, extversion FROM pg_extension"),
    "database": Kind(
        0,
        """SELECT key, value FROM (SELECT row_to_json(d) AS j, d.* FROM pg_database d
            WHERE datname = current_database()) d CROSS JOIN LATERAL (VALUES
                ('encoding', pg_encoding_to_char(d.encoding)),
                ('collation', j->>'datcollate'), ('character type', j->>'datctype'),
                ('provider of the collation', coalesce(j->>'datlocprovider', 'c')),
                ('locale of the provider', coalesce(j->>'datlocale', j->>'daticulocale')),
                ('version of the collation', j->>'datcollversion')) v (key, value)
        WHERE value IS NOT NULL""",
    ),
    "default": Kind(
        0,
        """SELECT split_part(c.text, '=', 1) || ' (' || coalesce(nullif(concat_ws(', ',
                'role ' || rolname, 'database ' || datname), ''), 'all roles') || ')',
            substr(c.text, strpos(c.text, '=') + 1)
        FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(setconfig) c (text)
            LEFT JOIN pg_roles r ON r.oid = s.setrole
            LEFT JOIN pg_database d ON d.oid = s.setdatabase""",
    ),
    "view": Kind(
        0,
        """SELECT c.relname, concat_ws(' ', 'WITH (' || array_to_string(c.reloptions, ', ')
                || ') AS', pg_get_viewdef(c.oid))
        FROM USER_CLASSES WHERE c.relkind IN ('v', 'm')""",
    ),
    "policy": Kind(
        90500,
        """SELECT tablename || '.' || policyname, concat_ws(' ',
            'AS ' || (row_to_json(p)->>'permissive'), 'FOR ' || cmd,
            'TO ' || array_to_string(roles, ', '), 'USING (' || qual || ')',
            'WITH CHECK (' || with_check || ')')
        FROM pg_policies p""",
    ),
    "partition": Kind(
        100000,
        """SELECT c.relname, CASE WHEN c.relispartition
                THEN 'PARTITION OF ' || p.relname || ' ' || pg_get_expr(c.relpartbound, c.oid)
                ELSE 'INHERITS ' || p.relname END
        FROM USER_CLASSES JOIN pg_inherits i ON i.inhrelid = c.oid
            JOIN pg_class p ON p.oid = i.inhparent WHERE c.relkind IN ('r', 'p', 'f')
        UNION ALL SELECT c.relname || ' partitioned', pg_get_partkeydef(c.oid)
        FROM USER_CLASSES WHERE c.relkind = 'p'""",
    ),
    "generated": Kind(
        120000,
        """SELECT c.relname || '.' || a.attname,
            concat_ws(' ', CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END,
                pg_get_expr(d.adbin, d.adrelid))
        FROM USER_CLASSES JOIN pg_attribute a ON a.attrelid = c.oid
            LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE a.attgenerated <> '' AND NOT a.attisdropped""",
    ),
    "domain": Kind(
        0,
        """SELECT t.typname || '.' || o.conname, pg_get_constraintdef(o.oid)
        FROM pg_constraint o JOIN pg_type t ON t.oid = o.contypid
            JOIN pg_namespace n ON n.oid = t.typnamespace AND USER_SCHEMAS""",
    ),
    "identity": Kind(
        90400,
        """SELECT c.relname, CASE c.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING'
            ELSE 'INDEX' END
        FROM USER_CLASSES WHERE c.relkind IN ('r', 'p') AND c.relreplident <> 'd'""",
    ),
    "publication": Kind(
        100000,
        """SELECT pubname, concat_ws(' ', CASE WHEN puballtables THEN 'ALL TABLES' END,
            (SELECT string_agg(tablename::text, ', ' ORDER BY tablename)
                FROM pg_publication_tables t WHERE t.pubname = p.pubname))
        FROM pg_publication p""",
    ),
    "slot": Kind(
        90400,
        """SELECT slot_name, concat_ws(' ', slot_type, plugin,
            CASE WHEN xmin IS NOT NULL OR catalog_xmin IS NOT NULL THEN 'holds back vacuum' END)
        FROM pg_replication_slots""",
    ),
    "prepared": Kind(0, "SELECT gid, 'prepared' FROM pg_prepared_xacts"),
    "distribution": Kind(
        0,
        """SELECT tablename || '.' || attname, concat_ws(' ',
            'n_distinct', round(s.n_distinct::numeric, 3),
            'null', round(null_frac::numeric, 2), 'width', avg_width,
            'correlation ' || round(correlation::numeric, 2),
            'most common ' || round(most_common_freqs[1]::numeric, 3))
        FROM pg_stats s JOIN pg_namespace n ON n.nspname = s.schemaname AND USER_SCHEMAS
        WHERE NOT inherited""",
    ),
    # How functions and statistics are made again: nobody compares these.
    "function_definition": Kind(
        0,
        """SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
            CASE WHEN coalesce(row_to_json(p)->>'prokind', 'f') IN ('f', 'p')
                AND coalesce(row_to_json(p)->>'proisagg', 'false') = 'false'
                THEN pg_get_functiondef(p.oid) END
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace AND USER_SCHEMAS
            JOIN pg_language l ON l.oid = p.prolang AND l.lanname NOT IN ('c', 'internal')
        WHERE NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid
            AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')""",
    ),
    "statistics_definition": Kind(
        100000, "SELECT stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext"
    ),
}
# Of these kinds nothing is a difference: they say how another kind is made again.
DEFINITIONS = frozenset({"function_definition", "statistics_definition"})


def objects_sql(version: int) -> str:
    """Reads every kind that the version has, a JSON object a row; a kind that fails costs itself.

    The last row of a kind has no name: it says that the kind was read.
    """
    statements = [
        _statement(name, kind.query)
        for name, kind in KINDS.items()
        if version >= kind.since
    ]
    return "\n".join(
        ["\\set ON_ERROR_STOP off", *statements, "\\set ON_ERROR_STOP on", ""]
    )


def _statement(name: str, query: str) -> str:
    for part, text in _PARTS.items():
        query = query.replace(part, text)
    return (
        f"SELECT row_to_json(t) FROM ((SELECT '{name}' AS object, o.name::text, "  # noqa: S608
        f"left(o.value::text, {MOST_CHARACTERS}) AS value "
        f"FROM ({query}) o (name, value) ORDER BY 2 LIMIT {MOST_OBJECTS}) "
        f"UNION ALL SELECT '{name}', NULL, NULL) t;"
    )


def objects(rows: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """What `objects_sql` printed, by kind and name."""
    by_kind: dict[str, dict[str, str]] = {}
    for row in rows:
        if "object" not in row:
            continue
        by_name = by_kind.setdefault(str(row["object"]), {})
        if row["name"] is not None and row["value"] is not None:
            by_name[str(row["name"])] = str(row["value"])
    return by_kind
