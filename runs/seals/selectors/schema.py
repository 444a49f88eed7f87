"""What the database's schema is made of, and how it differs from what the migrations make.

A view in the place of a table, a trigger or a row policy shows pages something else than was
stored. What migrations make is kept in `schema.json`, by names and digests; a test compares it with
a database that was just migrated. Only what all supported releases of PostgreSQL say alike is
compared: catalogue columns and source texts, no texts that PostgreSQL composes but those of
triggers.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from runs.seals.selectors.verification import Finding
from runs.shared import queries

KEPT = Path(__file__).with_suffix(".json")
SCHEMA = "@schema"
# There are as many partitions as there are runs for; their columns are those of their parents.
OURS = """
our AS (SELECT relnamespace AS oid FROM pg_class WHERE oid = 'django_migrations'::regclass),
relation AS (
  SELECT class.oid, relname, relkind, relispartition, relrowsecurity, relforcerowsecurity
    FROM pg_class class JOIN our ON our.oid = relnamespace
   WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
     AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = class.oid AND deptype = 'e')
)
"""
RELATIONS = f"""
WITH {OURS}
SELECT 'table ' || relname,
       concat_ws(' ', relkind, relrowsecurity, relforcerowsecurity, pg_table_is_visible(oid),
         (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull,
                   CASE WHEN attgenerated <> '' THEN pg_get_expr(adbin, adrelid) END), ','
                   ORDER BY attname)
            FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
           WHERE attrelid = relation.oid AND attnum > 0 AND NOT attisdropped))
  FROM relation WHERE NOT relispartition
UNION ALL
SELECT 'view ' || relname, pg_get_viewdef(oid) FROM relation WHERE relkind IN ('v', 'm')
UNION ALL
SELECT 'partition ' || relname, concat_ws(' ', relkind, relrowsecurity, relforcerowsecurity)
  FROM relation
 WHERE relispartition AND (relkind <> 'r' OR relrowsecurity OR relforcerowsecurity)
UNION ALL
SELECT 'child ' || inhrelid::regclass, inhparent::regclass::text
  FROM pg_inherits JOIN relation parent ON parent.oid = inhparent
 WHERE NOT (SELECT relispartition FROM pg_class WHERE oid = inhrelid)
"""  # noqa: S608 -- made of constants only
PROGRAMS = f"""
WITH {OURS}
SELECT 'trigger ' || tgname || ' of ' || relname,
       pg_get_triggerdef(tg.oid, true) || ' ' || tgenabled::text
  FROM pg_trigger tg JOIN relation ON relation.oid = tgrelid
 WHERE NOT tgisinternal AND tgparentid = 0
UNION ALL
SELECT 'trigger ' || tgname || ' of ' || relname, 'is switched: ' || tgenabled::text
  FROM pg_trigger tg JOIN relation ON relation.oid = tgrelid
 WHERE (tgisinternal OR tgparentid <> 0) AND tgenabled <> 'O'
UNION ALL
SELECT 'rule ' || rulename || ' of ' || relname, pg_get_ruledef(rewrite.oid)
  FROM pg_rewrite rewrite JOIN relation ON relation.oid = ev_class
 WHERE NOT (relkind IN ('v', 'm') AND rulename = '_RETURN')
UNION ALL
SELECT 'policy ' || polname || ' of ' || relname, coalesce(pg_get_expr(polqual, polrelid), '')
  FROM pg_policy JOIN relation ON relation.oid = polrelid
UNION ALL
SELECT 'function ' || proname || '(' || pg_get_function_identity_arguments(proc.oid) || ')',
       concat_ws(' ', prokind, lanname, provolatile, prosecdef, proconfig::text, prosrc)
  FROM pg_proc proc JOIN our ON our.oid = pronamespace JOIN pg_language ON pg_language.oid = prolang
 WHERE NOT EXISTS (SELECT FROM pg_depend WHERE objid = proc.oid AND deptype = 'e')
UNION ALL
SELECT 'operator ' || oprname || ' of ' || oprleft::regtype || ' and ' || oprright::regtype, ''
  FROM pg_operator operator JOIN our ON our.oid = oprnamespace
 WHERE NOT EXISTS (SELECT FROM pg_depend WHERE objid = operator.oid AND deptype = 'e')
"""  # noqa: S608 -- made of constants only


def found() -> dict[str, str]:
    """Each part of the schema by its name, with a digest of its definition. Two queries."""
    rows = [*queries.rows(RELATIONS), *queries.rows(PROGRAMS)]
    return {
        name: hashlib.sha256(row.encode()).hexdigest()[:16]
        for name, row in sorted(rows)
    }


@cache
def made() -> Mapping[str, str]:
    """The same, of what the migrations of this release make."""
    kept: Mapping[str, str] = json.loads(KEPT.read_text())
    return kept


def write() -> None:
    """Keep the schema of this database as that of the release: one that was just migrated."""
    KEPT.write_text(json.dumps(found(), indent=1, ensure_ascii=False) + "\n")


def findings() -> Iterator[Finding]:
    """What differs: pages may be shown something else than is stored."""
    made_and_found, here = made(), found()
    for name in sorted(made_and_found.keys() | here.keys()):
        if name not in here:
            yield _finding(f"The {name} is gone.")
        elif name not in made_and_found:
            yield _finding(f"The {name} was not made by BenchLab.")
        elif made_and_found[name] != here[name]:
            yield _finding(f"The {name} is another one than the migrations make.")


def _finding(message: str) -> Finding:
    return Finding(SCHEMA, None, "schema_differs", message)
