# Print what the kernel's log says of processes that it killed for lack of memory, and how many the
# control group of the given process has lost to that. What cannot be read is said.
# usage: sh -c "$this" killed [PID]
export LC_ALL=C
read -r up rest </proc/uptime && echo "uptime $up"
if log=$(dmesg 2>/dev/null) || log=$(journalctl -k -q -n 5000 --no-pager 2>/dev/null) && [ -n "$log" ]; then
    echo "$log" | grep -E "(Killed|Kill) process [0-9]+" | tail -n 50 | sed "s/^/kernel /"
else
    echo unreadable
fi
[ -n "$1" ] || exit 0
while IFS=: read -r number controllers path; do
    case ,$controllers, in
    ,,) files="/sys/fs/cgroup$path/memory.events" ;;
    *,memory,*) files="/sys/fs/cgroup/memory$path/memory.oom_control" ;;
    *) continue ;;
    esac
    for file in $files; do
        [ ! -r "$file" ] || sed -n "s/^oom_kill \([1-9][0-9]*\)$/group \1/p" "$file"
    done
done 2>/dev/null <"/proc/$1/cgroup"
exit 0
