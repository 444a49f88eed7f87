# Print what has taken the processors until now, in ticks: of the machine, of its kernel's own
# threads, and of the PostgreSQL servers whose data folders are given, with all their processes.
# usage: sh -c "$this" usage DATA_FOLDER...
export LC_ALL=C
servers=
for data; do
    read -r pid <"$data/postmaster.pid" 2>/dev/null && servers="$servers $pid"
done
echo "ticks $(getconf CLK_TCK)"
read -r up rest </proc/uptime && echo "uptime $up"
while read -r name user nice system idle iowait irq softirq steal rest; do
    case $name in
    cpu) echo "machine $((user + nice + system)) ${steal:-0}" ;;
    cpu*) processors=$((processors + 1)) ;;
    esac
done </proc/stat
echo "processors $processors"
# What has ended counts with its parent, once that has waited for it.
cat /proc/[0-9]*/stat 2>/dev/null | awk -v servers="$servers" '
    BEGIN { n = split(servers, listed, " "); for (i = 1; i <= n; i++) is_server[listed[i]] = 1 }
    {
        pid = $1
        sub(/.*\) /, "")
        if (is_server[pid]) own += $12 + $13 + $14 + $15
        else if (is_server[$2]) own += $12 + $13
        else if ($2 == 2) kernel += $12 + $13
    }
    END { printf "servers %d\nkernel %d\n", own, kernel }'
