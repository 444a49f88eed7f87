# End every durable step in a folder that still runs, with all its processes: INT, TERM, KILL.
# usage: sh -c "$this" stop STEPS SECONDS        (SECONDS between two signals)
set -u
steps=$1
patience=$2
left=0

now() { up=; { read -r up rest </proc/uptime; } 2>/dev/null; echo "$(date +%s.%N),$up"; }

group() { kill -s 0 -- "-$leader" 2>/dev/null; }

# The number is still that of the step's process, or of a group whose leader has ended.
same() {
    [ ! -e "/proc/$leader/stat" ] ||
        [ "$(sed 's/.*) //' "/proc/$leader/stat" 2>/dev/null | cut -d ' ' -f 20)" = "${process#* }" ]
}

end() {
    for signal in INT TERM KILL; do
        group && same || return 0
        kill -s $signal -- "-$leader" 2>/dev/null
        waited=0
        while group && [ $waited -lt $((patience * 10)) ]; do
            waited=$((waited + 1))
            sleep 0.1
        done
    done
    ! group
}

for dir in "$steps"/*; do
    [ -L "$dir/exit" ] && continue
    process=$(readlink "$dir/process") || continue
    leader=${process%% *}
    if end; then
        ln -s "$(now)" "$dir/finished" 2>/dev/null
    else
        left=1
    fi
done
exit $left
