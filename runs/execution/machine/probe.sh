# Print what this machine is, in sections "== name" that runs.execution.machine.target_facts reads.
# usage: sh -c "$this" probe BASE_DIR [BINDIR...]     (probe_installations.sh may follow)
#
# Runs begin with it: what the shell can do by itself starts no process.
export LC_ALL=C
base_dir=${1:-/}
[ $# -eq 0 ] || shift
tab=$(printf '\t')
section() { printf '== %s\n' "$1"; }
# The first line of a file into $line; empty where it cannot be read. Not for /proc/sys, which gives
# a shell that reads byte by byte only the first one.
first() {
    line=
    [ ! -r "$1" ] || IFS= read -r line <"$1" || :
} 2>/dev/null
tell_first() {
    section "$1"
    first "$2"
    printf '%s\n' "$line"
}

section uname; uname -srm
section os_release; cat /etc/os-release 2>/dev/null || cat /usr/lib/os-release 2>/dev/null ||
    cat /etc/system-release 2>/dev/null
section lscpu; lscpu 2>/dev/null
# Each processor on line: what a person reads above differs by architecture, this does not.
section topology
for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
    [ -r "$cpu/topology/core_id" ] || continue
    first "$cpu/topology/core_id" && core=$line
    first "$cpu/topology/physical_package_id" && package=$line
    first "$cpu/topology/thread_siblings_list"
    printf '%s\t%s\t%s\t%s\n' "${cpu##*/cpu}" "$core" "$package" "$line"
done
section hybrid
for kind in core atom lowpower; do
    [ ! -r "/sys/devices/cpu_$kind/cpus" ] || {
        first "/sys/devices/cpu_$kind/cpus" && printf '%s\t%s\n' "$kind" "$line"
    }
done
section allowed
while read -r name value rest; do
    [ "$name" != Cpus_allowed_list: ] || printf '%s\n' "$value"
done 2>/dev/null </proc/self/status
# What a container or a service may use, of each group up to the root: the least counts.
limits() {
    at=$2
    while :; do
        for file in cpu.max memory.max cpu.cfs_quota_us cpu.cfs_period_us memory.limit_in_bytes; do
            [ ! -r "$1$at/$file" ] || {
                first "$1$at/$file" && printf '%s\t%s\n' "$file" "$line"
            }
        done
        [ -n "$at" ] || break
        at=${at%/*}
    done
}
section cgroup
[ ! -r /proc/self/cgroup ] || printf 'known\n'
[ ! -r /proc/self/cgroup ] || while IFS=: read -r number controllers path; do
    case ",$controllers," in
        ,,) limits /sys/fs/cgroup "$path" ;;
        *,cpu,*) limits /sys/fs/cgroup/cpu "$path" ;;
        *,memory,*) limits /sys/fs/cgroup/memory "$path" ;;
    esac
done </proc/self/cgroup
section cpuinfo; grep -m 1 -E '^(model name|Model)' /proc/cpuinfo 2>/dev/null
section processors; getconf _NPROCESSORS_ONLN 2>/dev/null
section meminfo; cat /proc/meminfo 2>/dev/null
section virtualization; systemd-detect-virt 2>/dev/null
# Written by cloud-init where there is one; asking the cloud's own address could hang.
section cloud
told=/run/cloud-init/instance-data.json
[ ! -r $told ] || grep -o -E '"(cloud_name|instance_type|machine_type|vmSize)": *"[^"]*"' $told
section product
for told in /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name; do
    [ ! -r $told ] || { first $told && printf '%s\n' "$line"; }
done
# Which machine it is (`identity.py`); the base directory's fences tell who else has it.
tell_first machine_id /etc/machine-id
section boot_id; cat /proc/sys/kernel/random/boot_id 2>/dev/null
tell_first product_uuid /sys/class/dmi/id/product_uuid
section fences
for fence in "$base_dir"/leases/*; do
    [ ! -d "$fence" ] || printf '%s\n' "${fence##*/}"
done
section disks
for disk in /sys/block/*; do
    case ${disk##*/} in loop* | ram* | zram* | dm-* | sr*) continue ;; esac
    [ -r "$disk/size" ] || continue
    first "$disk/size" && size=$line
    first "$disk/queue/rotational" && rotational=$line
    first "$disk/device/model"
    printf '%s\t%s\t%s\t%s\n' "${disk##*/}" "$size" "$rotational" "$line"
done
section network
for card in /sys/class/net/*; do
    [ -e "$card/device" ] || continue
    driver=$(readlink "$card/device/driver")
    first "$card/speed" && speed=$line
    first "$card/mtu"
    printf '%s\t%s\t%s\t%s\n' "${card##*/}" "${driver##*/}" "$speed" "$line"
done
section storage
while [ ! -e "$base_dir" ]; do base_dir=$(dirname "$base_dir"); done
mounted=$(df -Pk "$base_dir" 2>/dev/null | {
    read -r title
    read -r source blocks used left share mounted rest && printf '%s\n' "$mounted"
})
# The last mount on a place is the one that is seen there.
mount=$(awk -v at="$mounted" '$5 == at {
    for (i = 7; i <= NF; i++) if ($i == "-") last = $3 "\t" $(i + 1) "\t" $6 "," $(i + 3) "\t" $(i + 2)
} END { print last }' /proc/self/mountinfo 2>/dev/null)
IFS=$tab read -r number filesystem options source <<END
$mount
END
[ -e "/sys/dev/block/$number" ] || number=$(stat -L -c '%Hr:%Lr' "$source" 2>/dev/null)
device=
[ -e "/sys/dev/block/${number:-none}" ] && device=$(readlink -f "/sys/dev/block/$number")
[ -e "$device/partition" ] && device=${device%/*}
printf 'device\t%s\nfilesystem\t%s\noptions\t%s\n' "${device##*/}" "$filesystem" "$options"
printf 'mount\t%s\n' "$mounted"
# Below a volume of LVM, dm-crypt or md are the disks themselves.
disks=
for disk in "$device"/slaves/*; do
    [ -e "$disk" ] || continue
    disk=$(readlink -f "$disk")
    [ -e "$disk/partition" ] && disk=${disk%/*}
    disks="$disks ${disk##*/}"
done
printf 'disks\t%s\n' "${disks:-${device##*/}}"
first "$device/queue/scheduler"
line=${line##*\[}
printf 'scheduler\t%s\n' "${line%%]*}"

section governor
if [ -r /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor ]; then
    cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | sort -u
fi
tell_first smt /sys/devices/system/cpu/smt/active
tell_first no_turbo /sys/devices/system/cpu/intel_pstate/no_turbo
tell_first huge_pages /sys/kernel/mm/transparent_hugepage/enabled
# Only what people set and what PostgreSQL feels; not what the kernel adjusts by itself.
section sysctl
(cd /proc/sys && grep -s '' vm/swappiness vm/overcommit_memory vm/overcommit_ratio vm/dirty_ratio \
    vm/dirty_background_ratio vm/dirty_bytes vm/dirty_background_bytes vm/dirty_expire_centisecs \
    vm/dirty_writeback_centisecs vm/zone_reclaim_mode vm/nr_hugepages kernel/numa_balancing \
    kernel/sched_autogroup_enabled kernel/sched_migration_cost_ns kernel/shmmax kernel/shmall \
    kernel/sem kernel/perf_event_paranoid net/core/somaxconn net/ipv4/tcp_congestion_control) |
    awk '{
        name = $0; sub(/:.*/, "", name); gsub("/", ".", name)
        value = $0; sub(/^[^:]*:/, "", value); gsub("\t", " ", value)
        if (value != "") print name "\t" value
    }'
# Any further fact: a line "name<tab>value", shown and compared as it is. See docs/adding-a-condition.md.
section more
first /sys/devices/system/clocksource/clocksource0/current_clocksource
printf 'clocksource\t%s\n' "$line"
nice_of() { shift 16; printf 'nice\t%s\n' "${1#0}"; }
first /proc/$$/stat
# Its second field is the program's name in brackets.
nice_of ${line##*) }
# Of the login: a step has nothing of it (step.sh), so it is that of the shell above. Names of
# variables alone, since values may be secret.
environ=/proc/$$/environ
[ -z "${BENCHLAB_STEP:-}" ] || environ=/proc/$PPID/environ
[ ! -r "$environ" ] || tr '\0' '\n' <"$environ" | {
    names= locale=
    while IFS= read -r line; do
        case $line in
            PG[A-Z]*=* | LD_*=* | MALLOC_*=* | GLIBC_TUNABLES=*) names="$names ${line%%=*}" ;;
            LANG=* | LC_*=*) locale="$locale $line" ;;
        esac
    done
    printf 'login_variables\t%s\nlogin_locale\t%s\n' "${names# }" "${locale# }"
}
section limits; cat /proc/self/limits 2>/dev/null
section tools
printf 'sysstat\t%s\n' "$(sar -V 2>/dev/null | while read -r name word version rest; do
    [ "$name $word" != "sysstat version" ] || printf '%s\n' "$version"
done)"
