# Perform one durable step: start it unless it was started before, wait for its end, report it.
# usage: sh -c "$this" step DIR CAP ARGV...     (standard input becomes the step's)
#
# The step runs in its own session and writes into DIR, so it outlives this shell, the connection
# and the worker. What is small is kept as the target of a symbolic link: made in one act, and
# possible even when the disk is full.
#   in out err   the step's standard streams
#   process      "PID STARTTIME" of the session leader
#   started finished   seconds since the epoch
#   exit         exit status
set -u
umask 077
dir=$1
cap=$2
shift 2

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
    dir=$1
    shift
    ln -s "$(date +%s.%N)" "$dir/started"
    ln -s "$$ $(start_time $$)" "$dir/process"
    "$@" <"$dir/in" >"$dir/out" 2>"$dir/err"
    status=$?
    ln -s "$(date +%s.%N)" "$dir/finished"
    ln -s "$status" "$dir/exit"
'

if mkdir "$dir" 2>/dev/null; then
    cat >"$dir/in" || { echo "cannot write to $dir" >&2; rm -rf "$dir"; exit 90; }
    # In the foreground: a background job would ignore INT, and could not be asked to end kindly.
    setsid sh -c "$leader" step "$dir" "$@" </dev/null >/dev/null 2>&1
elif [ ! -d "$dir" ]; then
    mkdir "$dir"
    exit 90
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

size() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }
out=$(size "$dir/out")
err=$(size "$dir/err")
[ "$out" -gt "$cap" ] && out=$cap
[ "$err" -gt "$cap" ] && err=$cap
link() { readlink "$dir/$1" || echo -; }
echo "$(link exit) $(link started) $(link finished) $out $err"
[ "$out" -gt 0 ] && head -c "$out" "$dir/out"
[ "$err" -gt 0 ] && head -c "$err" "$dir/err"
exit 0
