# The record of the durable step in $dir: what it is, and how it is read. It precedes the scripts
# that look at steps.
#
# What is small is kept as the name of an empty file: it is made in one act, is possible even when
# the disk is full, and is made and read by the shell itself. A process takes as long as hundreds of
# lines of the shell, and a run has dozens of steps.
#   in out err   the step's standard streams
#   process.PID.STARTTIME.BOOT   the session's leader; without BOOT where the kernel tells none
#   started.TIME finished.TIME   TIME is "SECONDS,UPTIME": since the epoch, and since the boot where
#                the kernel tells it
#   exit.STATUS  a step that was ended from outside has `finished` only
#   times        what `times` tells of the shell, and of the step with all its children
# Whatever it starts has BENCHLAB_STEP=DIR in its environment: that is how stop_steps.sh knows it.
boot=
{ read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null

# Field 22 of /proc/PID/stat tells a process from a later one with the same number.
start_time() {
    state= start=
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return
    set -- ${line##*) }
    state=$1 start=${20}
}

# A clock may be set meanwhile; the time since the boot only goes on. Some shells know the time.
read_clocks() {
    up=
    { read -r up rest </proc/uptime; } 2>/dev/null
    now=${EPOCHREALTIME:-$(date +%s.%N)},$up
}

has_ended() {
    set -- "$dir"/exit.*
    [ -e "$1" ]
}

# The releases before kept the process as a symbolic link to "PID STARTTIME BOOT".
find_process() {
    for name in "$dir"/process.*; do
        [ -e "$name" ] || break
        name=${name##*/process.}
        leader=${name%%.*} name=${name#*.}
        begun=${name%%.*} name=${name#"$begun"}
        begun_in=${name#.}
        return 0
    done
    [ -L "$dir/process" ] || return 1
    set -- $(readlink "$dir/process")
    leader=${1:-} begun=${2:-} begun_in=${3:-}
    [ -n "$leader" ]
}

# Whether that very process runs. Where nobody reaps what has ended, its number stays.
is_there() {
    [ "${begun_in:-$boot}" = "$boot" ] && kill -s 0 "$leader" 2>/dev/null || return 1
    start_time "$leader"
    [ "$start" = "$begun" ] && [ "$state" != Z ]
}

# What the first name tells that begins so; the shell sorts them.
told() {
    told=-
    for name in "$dir/$1".*; do
        if [ -e "$name" ]; then told=${name#"$dir/$1".}; fi
        return
    done
}

# At most $cap bytes of a stream. $end closes it, which the step cannot know: half a report has none.
stream() {
    { [ ! -s "$dir/$1" ] || head -c "$cap" "$dir/$1"; } && echo "benchlab-end $end"
}

# Its status, its times and its output, and to the standard error what it wrote there; `-` is what
# the step has not left. The second line of `times` has what the children took: user and system.
report() {
    told exit
    report=$told
    told started
    report="$report $told"
    told finished
    user= system=
    { { read -r line && read -r user system; } <"$dir/times"; } 2>/dev/null
    echo "benchlab-step $report $told ${user:+$user,}${system:--}"
    stream out
    { echo benchlab-err && stream err; } >&2
}
