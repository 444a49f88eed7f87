# How fast the machine is now: print how much of a fixed piece of work it does in short times. Rates
# of one moment, a line each: `core` of one processor (pieces in each hundredth of a second), `cores`
# of several at once (a line for each), `memory` and `disk` (what dd says of its time).
# usage: sh -c "$this" speed CORES FILE      (a FILE for the disk, or nothing)
export LC_ALL=C
here=$(command -v awk) || exit 0
here=$(readlink -f "$here" 2>/dev/null || echo "$here")
echo program "${here##*/}" $(wc -c <"$here")
processors=$(nproc 2>/dev/null) || processors=$(grep -c '^processor' /proc/cpuinfo)
cores=$1
[ "$cores" -le "${processors:-1}" ] || cores=${processors:-1}
echo "processors $cores"

# Whole hundredths, from one edge of the clock to another: it has no finer ones, and what a process
# takes to start is not in them. While the machine stands still they pass without a piece.
work='
    function hundredths(    line) {
        getline line <"/proc/uptime"
        close("/proc/uptime")
        return int(line * 100 + 0.5)
    }
    BEGIN {
        while ((now = hundredths()) < start) { }
        last = now
        while ((now = hundredths()) == last) { }
        begun = last = now
        while (now - begun < long) {
            for (i = 0; i < 500; i++) x = (x * 1103 + 12345) % 65536
            now = hundredths()
            if (now == last) { pieces++; continue }
            counts = counts " " pieces + 0
            for (last++; last < now; last++) counts = counts " 0"
            pieces = 0
        }
        print name counts
    }'
# Longer than the tenth of a second in which quotas are dealt out, on all that the load uses.
long=12 short=5
[ "$cores" -gt 1 ] || short=$long
awk -v name=core -v start=0 -v long="$short" "$work"
if [ "$cores" -gt 1 ]; then
    # They begin at once, when all have started.
    read -r up rest </proc/uptime
    start=$((${up%.*} * 100 + 1${up#*.} - 100 + 2 + cores / 5))
    number=0
    while [ "$number" -lt "$cores" ]; do
        awk -v name=cores -v start="$start" -v long="$long" "$work" &
        number=$((number + 1))
    done
    wait
fi

# What dd says of its time: NAME AMOUNT SECONDS, of as many as are wanted.
timed() {
    name=$1 amount=$2 turns=$3
    shift 3
    while [ "$turns" -gt 0 ]; do
        dd if=/dev/zero "$@"
        turns=$((turns - 1))
    done 2>&1 | sed -n "s/^[0-9]* bytes.* copied, /$name $amount /p"
}
# Zeroes through a block that no cache has wholly, 96 MB at a time.
timed memory 100663296 3 of=/dev/null bs=16777216 count=6
[ -n "$2" ] || exit 0
# A page, written to the disk itself.
timed disk 1 5 of="$2" bs=8192 count=1 conv=fsync
rm -f "$2"
exit 0
