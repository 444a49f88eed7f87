# Print twice, a second apart, what has used the processors until now, in ticks: the machine (in all,
# and without work), and each process with its name. usage: sh -c "$this"
export LC_ALL=C
look() {
    while read -r name user nice system idle iowait irq softirq steal rest; do
        [ "$name" != cpu ] || printf 'machine\t%s\t%s\n' \
            $((user + nice + system + idle + iowait + irq + softirq + ${steal:-0})) $((idle + iowait))
    done </proc/stat
    cat /proc/[0-9]*/stat 2>/dev/null | awk '{
        pid = $1
        name = $0; sub(/^[0-9]+ \(/, "", name); sub(/\) [A-Za-z] .*$/, "", name)
        sub(/^.*\) /, "")
        print "process\t" pid "\t" ($12 + $13) "\t" name
    }'
}
look
sleep 1
echo again
look
