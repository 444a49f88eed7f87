# Perform one durable step: start it unless it was started before, and wait for its end.
# usage: sh -c "$this$(cat step_report.sh)" step DIR CAP SIZE ARGV...
#                                      (SIZE bytes of standard input become the step's)
#
# The step runs in its own session and writes into DIR, so it outlives this shell, the connection
# and the worker. What is small is kept as the name of an empty file, or as the target of a symbolic
# link: both are made in one act, and are possible even when the disk is full.
#   in out err   the step's standard streams
#   process      a link to "PID STARTTIME BOOT" of the session leader, without BOOT where the kernel
#                tells none
#   started.TIME finished.TIME   TIME is "SECONDS,UPTIME": since the epoch, and since the boot where
#                the kernel tells it
#   exit.STATUS  a step that was ended from outside has `finished` only
#   times        what `times` tells of the shell, and of the step with all its children
# Whatever it starts has BENCHLAB_STEP=DIR in its environment: that is how stop_steps.sh knows it.
#
# A run has dozens of steps, and a process takes as long as hundreds of lines of the shell: what the
# shell can do by itself starts none.
set -u
umask 077
export LC_ALL=C
dir=$1
cap=$2
size=$3
shift 3

boot=
{ read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
# The input is whole before anything else is there: see below.
input=${dir%/*}/.${dir##*/}.$$

cannot_write() {
    rm -rf "$input" "$1"
    free=$(df -Pk "${dir%/*}" 2>/dev/null | awk 'NR == 2 { print $4 }')
    [ "${free:-64}" -lt 64 ] && exit 95
    exit 90
}

# Field 22 of /proc/PID/stat tells a process from a later one with the same number. Reading by the
# shell itself costs nothing.
start_time() {
    start=
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return
    set -- ${line##*) }
    start=${20}
}

has_ended() {
    set -- "$dir"/exit.*
    [ -e "$1" ]
}

alive() {
    set -- $(readlink "$dir/process")
    [ $# -ge 2 ] && [ "${3:-$boot}" = "$boot" ] && kill -s 0 "$1" 2>/dev/null || return 1
    start_time "$1"
    [ "$start" = "$2" ]
}

leader='
    start_time() {
        start=
        { read -r line <"/proc/$1/stat"; } 2>/dev/null || return
        set -- ${line##*) }
        start=${20}
    }
    # A clock may be set meanwhile; the time since the boot only goes on.
    read_clocks() {
        up=
        { read -r up rest </proc/uptime; } 2>/dev/null
        now=$(date +%s.%N),$up
    }
    export BENCHLAB_STEP="$1"
    dir=$1 boot=$2
    shift 2
    read_clocks
    true >"$dir/started.$now"
    start_time $$
    ln -s "$$ $start${boot:+ $boot}" "$dir/process" || exit 0
    # A step that was on its way while all were ended comes too late; after `process`, so that one
    # of the two sees the other.
    [ -L "${dir%/*}/.ended" ] && exit 0
    "$@" <"$dir/in" >"$dir/out" 2>"$dir/err"
    status=$?
    # With `command`, a disk that is full ends neither the shell nor the record.
    command times >"$dir/times" 2>/dev/null
    read_clocks
    true >"$dir/finished.$now"
    true >"$dir/exit.$status"
'

# Whoever makes DIR starts the step, and nobody waits for the network between the two. A connection
# that breaks without a word leaves a shell behind that waits for its input: it has begun nothing.
if [ ! -d "$dir" ]; then
    if [ "$size" -gt 0 ]; then
        cat >"$input" || cannot_write "$input"
        # A connection that breaks may look like the end of the input; half a script must not be run.
        if [ "$(wc -c <"$input")" -ne "$size" ]; then
            rm -f "$input"
            exit 94
        fi
    fi
    if mkdir "$dir" 2>/dev/null; then
        if [ "$size" -gt 0 ]; then
            mv "$input" "$dir/in"
        else
            true >"$dir/in"
        fi || cannot_write "$dir"
        # In the foreground: a background job would ignore INT, and could not be asked to end kindly.
        setsid sh -c "$leader" step "$dir" "$boot" "$@" </dev/null >/dev/null 2>&1
    elif [ -d "$dir" ]; then
        rm -f "$input"
    else
        mkdir "$dir"
        cannot_write "$input"
    fi
fi

# Another shell may have made DIR a moment ago and not yet started the step.
tries=0
while [ ! -L "$dir/process" ] && [ $tries -lt 20 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
while ! has_ended && alive; do
    sleep 0.3
done
if ! has_ended; then
    sleep 0.2
fi
