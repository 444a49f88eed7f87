# Perform one durable step: start it unless it was started before, and wait for its end.
# usage: setsid sh -c "$(cat step_record.sh)$this" step DIR CAP END LINES ARGV...
#                                      (LINES lines of standard input become the step's)
#
# This shell leads a session of its own, by setsid or by sshd (sessions.py), and writes into DIR: so
# step and record outlive the connection and the worker. It reports what the step has left
# (step_record.sh).
set -u
umask 077
export LC_ALL=C
dir=$1
cap=$2
end=$3
lines=$4
shift 4

cannot_write() {
    left=$(free "${dir%/*}")
    [ "${left:-64}" -lt 64 ] && { echo "No space left on device" >&2; exit 95; }
    exit 90
}

# By the shell, which keeps it to itself: it may be secret. The last line has no line feed of its own.
read_input() {
    input=
    while [ "$lines" -gt 0 ] && IFS= read -r line; do
        lines=$((lines - 1)) input="$input$line
"
    done
    [ "$lines" -eq 0 ]
}

# The command, with streams whose positions tell how much it has written.
execute() {
    if command exec 5>"$dir/out" 6>"$dir/err"; then
        "$@" <"$dir/in" >&5 2>&6 3>&- 4>&- 5>&- 6>&-
        status=$?
        read -r name written_out </proc/$$/fdinfo/5
        read -r name written_err </proc/$$/fdinfo/6
        exec 5>&- 6>&-
    else
        "$@" <"$dir/in" >"$dir/out" 2>"$dir/err" 3>&- 4>&- 5>&- 6>&-
        status=$?
    fi
}

# In the foreground: a background job would ignore INT, and could not be asked to end kindly.
perform() {
    # A shell without its own printf would show the input among its arguments.
    PATH=/ printf '%s' "${input%?}" >"$dir/in" || {
        rm -rf "$dir"
        cannot_write
    }
    input=
    # Whoever waits may be gone, and what the step leaves running must not hold his connection.
    exec 3>&1 4>&2 </dev/null >/dev/null 2>&1
    read_clocks_at_start
    true >"$dir/started.$now"
    start_time $$
    # A step that was on its way while all were ended comes too late; after `process`, so that one
    # of the two sees the other.
    ended=${dir%/*}/.ended
    if true >"$dir/process.$$.$start${boot:+.$boot}" && [ ! -e "$ended" ] && [ ! -L "$ended" ]; then
        # What the login's files export (PGOPTIONS, LD_PRELOAD ...) is no part of a measurement.
        execute env -i "PATH=$PATH" "HOME=${HOME:-/}" "USER=${USER:-}" "LOGNAME=${LOGNAME:-}" \
            "SHELL=/bin/sh" "LC_ALL=C" "BENCHLAB_STEP=$dir" "$@"
        # What fails on a full disk cannot say so there, and a moment later it may have room.
        [ "$status" = 0 ] || [ -s "$dir/err" ] || left=$(free "$dir")
        [ "${left:-64}" -ge 64 ] || true >"$dir/full"
        # With `command`, a disk that is full ends neither the shell nor the record.
        command times >"$dir/times"
        read_clocks_since "$now" || read_clocks
        true >"$dir/finished.$now"
        true >"$dir/exit.$status"
    fi
    exec 1>&3 2>&4 3>&- 4>&-
}

wait_for_it() {
    # Another shell may have made DIR a moment ago and not yet started the step.
    tries=0
    until find_process || [ $tries -eq 20 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    while ! has_ended && [ -n "${leader:-}" ] && is_there; do
        sleep 0.3
    done
    has_ended || sleep 0.2
}

# Whoever makes DIR starts the step. Its input is whole before that: nobody waits for the network
# between the two, and half a script is not run where a connection that broke looks like its end.
if [ -d "$dir" ]; then
    wait_for_it
else
    read_input || exit 94
    if mkdir "$dir" 2>/dev/null; then
        perform "$@"
    elif [ -d "$dir" ]; then
        wait_for_it
    else
        mkdir "$dir"
        cannot_write
    fi
fi
report
exit 0
