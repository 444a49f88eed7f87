# Sample by perf until it is ended, into FOLDER/perf.data; nothing is written elsewhere. Where the kernel
# may be seen, FOLDER/switches.data has the stacks at which a process left its processor.
# usage: sh -c "$this" profile FOLDER SECONDS LARGEST [DATA]      (LARGEST in KiB, as in 1024K)
#
# Without DATA the whole machine is sampled. With it only the PostgreSQL that serves this data
# directory and its children, for which a user needs no permission while the kernel is not stricter
# than usual. Exit status 127: there is no perf; 77: the kernel does not let this user sample; 78: the
# recording cannot be limited.
export LC_ALL=C PERF_CONFIG=/dev/null
folder=$1 seconds=$2 largest=$3 data=${4:-}
command -v perf >/dev/null || exit 127

user=
if [ -z "$data" ]; then
    scope=-a
else
    paranoia=$(cat /proc/sys/kernel/perf_event_paranoid)
    [ "${paranoia:-4}" -gt 2 ] && exit 77
    [ "${paranoia:-4}" -lt 2 ] || user=:u
    read -r postmaster <"$data/postmaster.pid"
    pids=$postmaster
    for child in $(cat "/proc/$postmaster/task/$postmaster/children" 2>/dev/null || pgrep -P "$postmaster"); do
        pids=$pids,$child
    done
    scope="-p $pids"
fi
# Virtual machines often have no counters of the hardware.
event=cpu-clock
perf stat -x , -e "cycles$user" true 2>&1 | grep -q '^[0-9]' && event=cycles
limit=
if perf record -h 2>&1 | grep -q -e --max-size; then
    limit="--max-size $largest"
else
    # Before Linux 5.6 perf knows no limit. Where the shell's is reached, the recording is lost.
    trap '' XFSZ
    ulimit -f $((${largest%K} * 2)) || exit 78
fi
# -N: without a copy of the programs in the user's home.
trap : INT
beside=
if [ -z "$user" ] && [ -n "$limit" ]; then
    perf record -q -N -F 99 -e context-switches -g -o "$folder/switches.data" $limit $scope \
        -- sleep "$seconds" >/dev/null 2>&1 &
    beside=$!
fi
perf record -q -N -F 99 -e "$event$user" -g -o "$folder/perf.data" $limit $scope \
    -- sleep "$seconds" >/dev/null
status=$?
[ -z "$beside" ] || { kill -INT "$beside" 2>/dev/null; wait "$beside"; }
recorded=$(wc -c <"$folder/perf.data" 2>/dev/null)
if [ -z "$limit" ] && [ "${recorded:-0}" -ge $((${largest%K} * 1024)) ]; then
    echo "perf recorded more than $largest, and cannot end by itself before that" >&2
fi
# To be interrupted is how a recording ends well.
[ $status -eq 130 ] || exit $status
