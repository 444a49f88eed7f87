# Print what has taken the processors until now, in ticks: of the machine, of its kernel's own
# threads, and of the PostgreSQL servers whose data folders are given, with all their processes (in
# all, and in the kernel), and of the running steps whose folders are given; what was swapped, for
# how long a quota has stopped processes, and for how long some waited for what they lacked.
# usage: sh -c "$(cat step_record.sh)$this" usage FOLDER...
export LC_ALL=C
servers= steps=
for folder; do
    { read -r pid <"$folder/postmaster.pid"; } 2>/dev/null && servers="$servers $pid"
    dir=$folder
    find_process && steps="$steps $leader"
done
# Of every machine on which PostgreSQL still runs.
echo "ticks 100"
read -r up rest </proc/uptime && echo "uptime $up"
while read -r name user nice system idle iowait irq softirq steal rest; do
    case $name in
    cpu) echo "machine $((user + nice + system)) ${steal:-0}" ;;
    cpu*) processors=$((processors + 1)) ;;
    esac
done </proc/stat
echo "processors $processors"
# Pages that were written to swap, and read from there.
swapped=0
while read -r name number rest; do
    case $name in pswpin | pswpout) swapped=$((swapped + number)) ;; esac
done </proc/vmstat
echo "swapped $swapped"
# For how long quotas have stopped processes in the control groups of the servers and of this login,
# and in those around them, in microseconds: each group once.
throttled=0 groups=" "
is_quota_known=
add_throttled() { # FILE NAME NUMBER_IN_A_MICROSECOND
    case $groups in *" $1 "*) return ;; esac
    groups="$groups$1 " is_quota_known=1
    while read -r key number; do
        [ "$key" != "$2" ] || throttled=$((throttled + number / $3))
    done <"$1"
}
for pid in self $servers; do
    while IFS=: read -r number controllers path; do
        path=${path%/}
        while :; do
            case ,$controllers, in
            ,,) for file in "/sys/fs/cgroup$path/cpu.stat" "/sys/fs/cgroup/unified$path/cpu.stat"; do
                [ ! -r "$file" ] || add_throttled "$file" throttled_usec 1
            done ;;
            *,cpu,*) for file in "/sys/fs/cgroup/cpu$path/cpu.stat"; do
                [ ! -r "$file" ] || add_throttled "$file" throttled_time 1000
            done ;;
            esac
            [ -n "$path" ] || break
            path=${path%/*}
        done
    done <"/proc/$pid/cgroup"
done 2>/dev/null
echo "throttled $throttled"
[ -n "$is_quota_known" ] || echo "unread quota"
# In microseconds: at least one process waited for a processor, for memory, for a disk.
for lacked in cpu memory io; do
    if read -r kind averages <"/proc/pressure/$lacked"; then
        echo "pressure_$lacked ${averages##*total=}"
    else
        echo "unread pressure"
    fi
done 2>/dev/null
# What has ended counts with its parent, once that has waited for it. A process may end meanwhile.
awk -v servers="$servers" -v steps="$steps" '
    function count() {
        pid = $1
        sub(/.*\) /, "")
        if (is_server[pid]) { own += $12 + $13 + $14 + $15; system_time += $13 + $15 }
        else if (is_server[$2]) { own += $12 + $13; system_time += $13 }
        else if (is_step[$3]) own += $12 + $13 + (pid == $3 ? $14 + $15 : 0)
        else if ($2 == 2) kernel += $12 + $13
    }
    BEGIN {
        n = split(servers, listed, " "); for (i = 1; i <= n; i++) is_server[listed[i]] = 1
        n = split(steps, listed, " "); for (i = 1; i <= n; i++) is_step[listed[i]] = 1
        for (i = 1; i < ARGC; i++) {
            if ((getline <ARGV[i]) > 0) count()
            close(ARGV[i])
        }
        printf "servers %d %d\nkernel %d\n", own, system_time, kernel
    }' /proc/[0-9]*/stat
