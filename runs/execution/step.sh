# Perform one durable step: start it unless it was started before, and wait for its end.
# usage: sh -c "$this$(cat step_report.sh)" step DIR CAP SIZE ARGV...
#                                      (SIZE bytes of standard input become the step's)
#
# The step runs in its own session and writes into DIR, so it outlives this shell, the connection
# and the worker. What is small is kept as the target of a symbolic link: made in one act, and
# possible even when the disk is full.
#   in out err   the step's standard streams
#   process      "PID STARTTIME" of the session leader
#   started finished   "SECONDS,UPTIME": since the epoch, and since the boot where the kernel tells it
#   exit         exit status; a step that was ended from outside has `finished` only
#   times        what `times` tells of the shell, and of the step with all its children
set -u
umask 077
export LC_ALL=C
dir=$1
cap=$2
size=$3
shift 3

cannot_write() {
    rm -rf "$dir"
    free=$(df -Pk "${dir%/*}" 2>/dev/null | awk 'NR == 2 { print $4 }')
    [ "${free:-64}" -lt 64 ] && exit 95
    exit 90
}

start_time() {
    # Field 22 of /proc/PID/stat tells a process from a later one with the same number.
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

alive() {
    process=$(readlink "$dir/process") || return 1
    pid=${process%% *}
    kill -s 0 "$pid" 2>/dev/null && [ "$(start_time "$pid")" = "${process#* }" ]
}

leader='
    start_time() { sed "s/.*) //" "/proc/$1/stat" 2>/dev/null | cut -d " " -f 20; }
    # A clock may be set meanwhile; the time since the boot only goes on.
    now() { up=; { read -r up rest </proc/uptime; } 2>/dev/null; echo "$(date +%s.%N),$up"; }
    dir=$1
    shift
    ln -s "$(now)" "$dir/started"
    ln -s "$$ $(start_time $$)" "$dir/process"
    "$@" <"$dir/in" >"$dir/out" 2>"$dir/err"
    status=$?
    # With `command`, a disk that is full ends neither the shell nor the record.
    command times >"$dir/times" 2>/dev/null
    ln -s "$(now)" "$dir/finished"
    ln -s "$status" "$dir/exit"
'

if mkdir "$dir" 2>/dev/null; then
    cat >"$dir/in" || cannot_write
    # A connection that breaks looks like the end of the input; half a script must not be run.
    if [ "$(wc -c <"$dir/in")" -ne "$size" ]; then
        rm -rf "$dir"
        exit 94
    fi
    # In the foreground: a background job would ignore INT, and could not be asked to end kindly.
    setsid sh -c "$leader" step "$dir" "$@" </dev/null >/dev/null 2>&1
elif [ ! -d "$dir" ]; then
    mkdir "$dir"
    cannot_write
fi

# Another shell may have made DIR a moment ago and not yet started the step.
tries=0
while [ ! -L "$dir/process" ] && [ $tries -lt 20 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
while [ ! -L "$dir/exit" ] && alive; do
    sleep 0.3
done
if [ ! -L "$dir/exit" ]; then
    sleep 0.2
fi
