"""Settings by whose value a server runs something on its machine: commands, code, libraries.

What a user writes never becomes shell on anybody's server. Sources: the chapters "Write Ahead
Log", "Client Connection Defaults" and "PL/Perl Under the Hood" of PostgreSQL's manual.
"""

import re

# Commands without effect; `(disabled)` is what SHOW prints without archiving.
HARMLESS_COMMANDS = (
    "",
    "(disabled)",
    "true",
    "/bin/true",
    "/usr/bin/true",
    "exit 0",
    "cd .",
)
LIBRARIES = frozenset(
    {
        "archive_library",
        "jit_provider",
        "local_preload_libraries",
        "oauth_validator_libraries",
        "session_preload_libraries",
        "shared_preload_libraries",
    }
)
# Search paths for libraries and extensions, and names for the installation's own folder.
PLACES = {"dynamic_library_path": "$libdir", "extension_control_path": "$system"}
# Names end so in the server itself and in its extensions, and will in those to come.
_COMMAND = re.compile(r"(^|.*[._])command")
# A language's library may run a setting's value when it is loaded (plperl.on_init, pllua.on_init,
# pljava.vmoptions), and nobody knows the extensions to come. So only these are taken: extensions
# whose settings have been read in their source or manual, and are numbers, words and switches. What
# is a command by its name is refused of them as well.
KNOWN_EXTENSIONS = frozenset(
    {
        "auth_delay",
        "auto_explain",
        "basic_archive",  # its folder is looked at by `ownership`
        "bloom",
        "citus",
        "cron",
        "hnsw",
        "hypopg",
        "isn",
        "ivfflat",
        "orioledb",
        "passwordcheck",
        "pg_hint_plan",
        "pg_partman_bgw",
        "pg_prewarm",
        "pg_qualstats",
        "pg_stat_kcache",
        "pg_stat_monitor",
        "pg_stat_statements",
        "pg_store_plans",
        "pg_trgm",
        "pg_wait_sampling",
        "pgaudit",
        "pgrowlocks",
        "plpgsql",
        "plpgsql_check",
        "postgres_fdw",
        "sepgsql",
        "timescaledb",
        "vchordrq",
    }
)
# Harmless settings of languages whose others are code.
_KNOWN = frozenset({"plperl.use_strict"})
_LIBRARY = re.compile(r"(\$libdir/(plugins/)?)?\w[\w.+-]*")
_BELOW = re.compile(r"(/\w[\w.+-]*)*/?")


def runs_command(name: str, value: str) -> bool:
    """Whether the server would hand the value to a shell or an interpreter, and it does something.

    Only values that are known to do nothing are none.
    """
    if _COMMAND.fullmatch(name.lower()):
        return value.strip() not in HARMLESS_COMMANDS
    return may_be_code(name) and bool(value.strip())


def may_be_code(name: str) -> bool:
    """Whether the setting is one of an extension that BenchLab does not know."""
    extension, dot, own = name.lower().partition(".")
    return (
        bool(dot)
        and "." not in own
        and extension not in KNOWN_EXTENSIONS
        and name.lower() not in _KNOWN
    )


def loads_from_elsewhere(name: str, value: str) -> bool:
    """Whether the server would load a library from outside its installation."""
    if name.lower() in LIBRARIES:
        names = [each.strip().strip('"').strip() for each in value.split(",")]
        return any(each and _LIBRARY.fullmatch(each) is None for each in names)
    own = PLACES.get(name.lower())
    if own is None:
        return False
    return any(each and not _is_below(each.strip(), own) for each in value.split(":"))


def _is_below(path: str, own: str) -> bool:
    return path.startswith(own) and _BELOW.fullmatch(path[len(own) :]) is not None
