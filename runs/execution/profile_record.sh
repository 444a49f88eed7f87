# Sample by perf until it is ended, into FOLDER/perf.data; nothing is written elsewhere.
# usage: sh -c "$this" profile FOLDER SECONDS LARGEST [DATA]
#
# Without DATA the whole machine is sampled. With it only the PostgreSQL that serves this data
# directory and its children, for which a user needs no permission while the kernel is not stricter
# than usual. Exit status 127: there is no perf; 77: the kernel does not let this user sample.
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
perf record -h 2>&1 | grep -q -e --max-size && limit="--max-size ${largest}"
# -N: without a copy of the programs in the user's home.
trap : INT
perf record -q -N -F 99 -e "$event$user" -g -o "$folder/perf.data" ${limit:-} $scope \
    -- sleep "$seconds" >/dev/null
status=$?
# To be interrupted is how a recording ends well.
[ $status -eq 130 ] || exit $status
