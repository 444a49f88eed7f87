# Look whether a target can take a run; changes nothing. Prints "name<TAB>value..." lines.
# usage: sh -c "$this" preflight BASE_DIR MARK BINDIRS... -- SUDO_COMMANDS... -- ADDRESSES...
# A sudo command is one argument, its words between blanks: they come from a fixed list.
export LC_ALL=C
base=$1 mark=$2
shift 2
say() { printf '%s\t%s\n' "$1" "$2"; }

say clock "$(date +%s.%N)"
say uid "$(id -u)"
say load "$(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null)"
say processors "$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
say memory_total_kb "$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo 2>/dev/null)"
say memory_available_kb "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)"
command -v setsid >/dev/null && say setsid yes
for tool in taskset perf ip strace pgbouncer valgrind; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null && say tool "$tool"
done
say paranoia "$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null)"
say ptrace_scope "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null)"
say governors "$(cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u | tr '\n' ' ')"

# What is not there yet is judged by the nearest folder above it.
near=$base
while [ ! -e "$near" ]; do near=${near%/*}; [ -n "$near" ] || near=/; done
say free_kb "$(df -Pk "$near" 2>/dev/null | awk 'NR == 2 { print $4 }')"
[ -w "$near" ] && say writable yes
if [ ! -e "$base" ]; then
    say base absent
elif [ ! -d "$base" ]; then
    say base file
elif [ -L "$base/.benchlab" ] || { [ -f "$base/.benchlab" ] && [ "$(cat "$base/.benchlab")" != "$mark" ]; }; then
    say base another
elif [ -f "$base/.benchlab" ]; then
    say base ours
    for folder in runs clusters leases; do [ -L "$base/$folder" ] && say leads_out "$folder"; done
elif [ -n "$(ls -A "$base" | grep -v -x -F -e .benchlab.new -e commands)" ]; then
    say base foreign
else
    say base empty
fi
[ -d "$base" ] && [ -n "$(find "$base" -prune -perm -0002)" ] && say world_writable yes

# What the machine's owner has put there to be executed, and what is the matter with the rest. A link
# is never followed, and a name that no campaign can have is left out.
[ -L "$base/commands" ] && say commands link
for file in "$base"/commands/*; do
    [ ! -L "$base/commands" ] || break
    name=${file##*/}
    case $name in '*' | -* | *[!A-Za-z0-9._-]*) continue ;; esac
    if [ -L "$file" ]; then
        say command "link $name"
    elif [ ! -f "$file" ]; then
        say command "irregular $name"
    elif [ ! -x "$file" ]; then
        say command "not_executable $name"
    else
        say command "executable $name"
    fi
done

while [ $# -gt 0 ] && [ "$1" != -- ]; do
    for program in postgres initdb pg_ctl pgbench psql; do
        [ -x "$1/$program" ] && say "program" "$1/$program"
    done
    # By running them: a library that is missing shows only then.
    "$1/pgbench" --version >/dev/null 2>&1 && say client "$1"
    say version "$1 $("$1/postgres" --version 2>&1 | head -n 1)"
    shift
done
[ $# -gt 0 ] && shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    if [ ! -x "${1%% *}" ]; then
        say no_such_program "${1%% *}"
    else
        sudo -n -l $1 >/dev/null 2>&1 || say sudo_refused "$1"
    fi
    shift
done
[ $# -gt 0 ] && shift

# All at once and not for long: a resolver that does not answer must not cost the whole report.
PATH=$PATH:/usr/sbin:/sbin
patience=
command -v timeout >/dev/null && patience="timeout 2"
way_to() {
    number=$1
    if command -v getent >/dev/null; then
        number=$($patience getent ahosts "$1" | awk 'NR == 1 { print $1 }')
    fi
    if [ -z "$number" ]; then
        say unresolved "$1"
    elif command -v ip >/dev/null && ! ip -o route get "$number" >/dev/null 2>&1; then
        say no_route "$1"
    fi
}
for address; do way_to "$address" 2>/dev/null & done
wait
say end yes
