# Print what this machine is, in sections "== name" that runs.execution.facts reads.
# usage: sh -c "$this" probe BASE_DIR [BINDIR...]
export LC_ALL=C
base_dir=${1:-/}
[ $# -eq 0 ] || shift
section() { printf '== %s\n' "$1"; }

section uname; uname -srm
section hostname; uname -n
section os_release; cat /etc/os-release 2>/dev/null
section lscpu; lscpu 2>/dev/null
section cpuinfo; grep -m 1 -E '^(model name|Model)' /proc/cpuinfo 2>/dev/null
section processors; getconf _NPROCESSORS_ONLN 2>/dev/null
section meminfo; cat /proc/meminfo 2>/dev/null
section virtualization; systemd-detect-virt 2>/dev/null
# Written by cloud-init where there is one; asking the cloud's own address could hang.
section cloud
grep -o -E '"(cloud_name|instance_type|machine_type|vmSize)": *"[^"]*"' \
    /run/cloud-init/instance-data.json 2>/dev/null
section product; cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name 2>/dev/null
section disks
for disk in /sys/block/*; do
    case ${disk##*/} in loop* | ram* | zram* | dm-* | sr*) continue ;; esac
    [ -r "$disk/size" ] || continue
    printf '%s\t%s\t%s\t%s\n' "${disk##*/}" "$(cat "$disk/size")" \
        "$(cat "$disk/queue/rotational" 2>/dev/null)" "$(cat "$disk/device/model" 2>/dev/null)"
done
section network
for card in /sys/class/net/*; do
    [ -e "$card/device" ] || continue
    printf '%s\t%s\t%s\t%s\n' "${card##*/}" "$(basename "$(readlink -f "$card/device/driver")")" \
        "$(cat "$card/speed" 2>/dev/null)" "$(cat "$card/mtu" 2>/dev/null)"
done
section storage
while [ ! -e "$base_dir" ]; do base_dir=$(dirname "$base_dir"); done
mounted=$(df -Pk "$base_dir" 2>/dev/null | awk 'NR == 2 { print $6 }')
# The last mount on a place is the one that is seen there.
mount=$(awk -v at="$mounted" '$5 == at {
    for (i = 7; i <= NF; i++) if ($i == "-") last = $3 "\t" $(i + 1) "\t" $6 "," $(i + 3) "\t" $(i + 2)
} END { print last }' /proc/self/mountinfo 2>/dev/null)
number=$(printf '%s' "$mount" | cut -f 1)
[ -e "/sys/dev/block/$number" ] ||
    number=$(stat -L -c '%Hr:%Lr' "$(printf '%s' "$mount" | cut -f 4)" 2>/dev/null)
device=
[ -e "/sys/dev/block/${number:-none}" ] && device=$(readlink -f "/sys/dev/block/$number")
[ -e "$device/partition" ] && device=$(dirname "$device")
printf 'device\t%s\nfilesystem\t%s\noptions\t%s\n' "${device##*/}" \
    "$(printf '%s' "$mount" | cut -f 2)" "$(printf '%s' "$mount" | cut -f 3)"
# Below a volume of LVM, dm-crypt or md are the disks themselves.
disks=
for disk in "$device"/slaves/*; do
    [ -e "$disk" ] || continue
    disk=$(readlink -f "$disk")
    [ -e "$disk/partition" ] && disk=$(dirname "$disk")
    disks="$disks ${disk##*/}"
done
printf 'disks\t%s\n' "${disks:-${device##*/}}"
printf 'scheduler\t%s\n' "$(sed 's/.*\[\(.*\)\].*/\1/' "$device/queue/scheduler" 2>/dev/null)"

section governor; cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | sort -u
section smt; cat /sys/devices/system/cpu/smt/active 2>/dev/null
section no_turbo; cat /sys/devices/system/cpu/intel_pstate/no_turbo 2>/dev/null
section huge_pages; cat /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null
# Only what people set and what PostgreSQL feels; not what the kernel adjusts by itself.
section sysctl
for name in vm.swappiness vm.overcommit_memory vm.overcommit_ratio vm.dirty_ratio \
    vm.dirty_background_ratio vm.dirty_bytes vm.dirty_background_bytes vm.dirty_expire_centisecs \
    vm.dirty_writeback_centisecs vm.zone_reclaim_mode vm.nr_hugepages kernel.numa_balancing \
    kernel.sched_autogroup_enabled kernel.sched_migration_cost_ns kernel.shmmax kernel.shmall \
    kernel.sem kernel.perf_event_paranoid net.core.somaxconn net.ipv4.tcp_congestion_control; do
    value=$(cat "/proc/sys/$(printf '%s' "$name" | tr . /)" 2>/dev/null | tr '\t' ' ')
    [ -z "$value" ] || printf '%s\t%s\n' "$name" "$value"
done
section limits; cat /proc/self/limits 2>/dev/null
section tools
printf 'sysstat\t%s\n' "$(sar -V 2>/dev/null | sed -n 's/^sysstat version //p' | cut -d ' ' -f 1)"
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
