# End what a durable step started, but not the shell that keeps its exit status: INT, TERM, KILL.
# usage: sh -c "$this" end DIR
set -u
dir=$1
process=$(readlink "$dir/process") || exit 0
leader=${process%% *}

after_name() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null; }
[ "$(after_name "$leader" | cut -d ' ' -f 20)" = "${process#* }" ] || exit 0

# Everything of the step's process group but its leader; reading by the shell itself costs nothing.
others() {
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        pid=${stat#/proc/}
        pid=${pid%/stat}
        set -- ${line##*) }
        [ "$3" = "$leader" ] && [ "$pid" != "$leader" ] && printf '%s ' "$pid"
    done 2>/dev/null
}

for signal in INT TERM KILL; do
    for pid in $(others); do kill -s $signal "$pid" 2>/dev/null; done
    waited=0
    while [ ! -L "$dir/exit" ] && [ $waited -lt 40 ]; do
        waited=$((waited + 1))
        sleep 0.05
    done
    [ -L "$dir/exit" ] && exit 0
done
exit 0
