# Print the PostgreSQL installations as well; follows probe.sh, whose arguments are left.

section installations
# What is compiled in; -C prints a value without a cluster, and never starts a server.
built_in() {
    "$real/postgres" -c config_file=/dev/null -c hba_file=/dev/null -c ident_file=/dev/null \
        -c data_directory=/ -C "$1" 2>/dev/null </dev/null | tail -n 1
}
extensions() {
    share=$("$real/pg_config" --sharedir 2>/dev/null)
    for control in "${share:-/no}"/extension/*.control "$real"/../share/extension/*.control \
        "$real"/../share/postgresql/extension/*.control; do
        [ -e "$control" ] || continue
        control=${control##*/}
        printf '%s ' "${control%.control}"
    done
}
# What the server itself was built with, where pg_config is not installed: since 9.6 it has its flags
# in it, and always its compiler.
in_server() { grep -aom 1 -e "$1[[:print:]]*" "$real/postgres" 2>/dev/null | head -n 1; }
seen=
# By Debian and Ubuntu, by the PGDG's rpm, by EDB, by a source's own prefix, and what is on PATH.
for bindir in "$@" /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/PostgreSQL/*/bin \
    /opt/postgresql*/bin /usr/edb/as*/bin /usr/local/pgsql*/bin /usr/local/postgresql*/bin \
    /usr/local/bin /usr/bin; do
    [ -x "$bindir/postgres" ] && [ -x "$bindir/pg_ctl" ] && [ -x "$bindir/initdb" ] || continue
    real=$(dirname "$(readlink -f "$bindir/postgres")")
    case " $seen " in *" $real "*) continue ;; esac
    seen="$seen $real"
    printf 'bindir\t%s\n' "$real"
    printf 'postgres\t%s\n' "$("$real/postgres" --version 2>&1 | head -n 1)"
    printf 'configure\t%s\n' "$("$real/pg_config" --configure 2>/dev/null | head -n 1)"
    cflags=$("$real/pg_config" --cflags 2>/dev/null | head -n 1)
    [ -n "$cflags" ] || cflags=$(in_server '-Wall -Wmissing-prototypes')
    # As whoever installed it says, such as script/lab.
    printf 'cflags\t%s\n' "${cflags:-$(head -n 1 "$real/../cflags" 2>/dev/null)}"
    printf 'compiler\t%s\n' "$(in_server ', compiled by ')"
    for name in block_size wal_block_size wal_segment_size; do
        printf '%s\t%s\n' "$name" "$(built_in "$name")"
    done
    printf 'extensions\t%s\n' "$(extensions)"
    printf 'pgbench\t%s\n' "$("$real/pgbench" --version 2>/dev/null | head -n 1)"
    printf 'psql\t%s\n' "$("$real/psql" --version 2>/dev/null | head -n 1)"
done
