# Print what this machine is, in sections "== name" that runs.execution.facts reads.
# usage: sh -c "$this" probe [BINDIR...]
export LC_ALL=C
section() { printf '== %s\n' "$1"; }

section uname; uname -srm
section hostname; uname -n
section os_release; cat /etc/os-release 2>/dev/null
section lscpu; lscpu 2>/dev/null
section cpuinfo; grep -m 1 -E '^(model name|Model)' /proc/cpuinfo 2>/dev/null
section processors; getconf _NPROCESSORS_ONLN 2>/dev/null
section meminfo; cat /proc/meminfo 2>/dev/null
section virtualization; systemd-detect-virt 2>/dev/null
section product; cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name 2>/dev/null
section disks
for disk in /sys/block/*; do
    case ${disk##*/} in loop* | ram* | zram* | dm-* | sr*) continue ;; esac
    [ -r "$disk/size" ] || continue
    printf '%s\t%s\t%s\t%s\n' "${disk##*/}" "$(cat "$disk/size")" \
        "$(cat "$disk/queue/rotational" 2>/dev/null)" "$(cat "$disk/device/model" 2>/dev/null)"
done
section governor; cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null
section clock; date +%s.%N

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
    printf 'cflags\t%s\n' "$("$real/pg_config" --cflags 2>/dev/null | head -n 1)"
    for name in block_size wal_block_size wal_segment_size; do
        printf '%s\t%s\n' "$name" "$(built_in "$name")"
    done
    printf 'extensions\t%s\n' "$(extensions)"
    printf 'pgbench\t%s\n' "$("$real/pgbench" --version 2>/dev/null | head -n 1)"
    printf 'psql\t%s\n' "$("$real/psql" --version 2>/dev/null | head -n 1)"
done
section end
