# End a durable step with all its processes: INT, then TERM, then KILL.
# usage: sh -c "$this" stop DIR SECONDS        (SECONDS between two signals)
set -u
dir=$1
patience=$2
process=$(readlink "$dir/process") || exit 0
leader=${process%% *}

group() { kill -s 0 -- "-$leader" 2>/dev/null; }
same() {
    [ ! -e "/proc/$leader/stat" ] ||
        [ "$(sed 's/.*) //' "/proc/$leader/stat" 2>/dev/null | cut -d ' ' -f 20)" = "${process#* }" ]
}

for signal in INT TERM KILL; do
    group && same || exit 0
    kill -s $signal -- "-$leader" 2>/dev/null
    waited=0
    while group && [ $waited -lt $((patience * 10)) ]; do
        waited=$((waited + 1))
        sleep 0.1
    done
done
group && exit 1
exit 0
