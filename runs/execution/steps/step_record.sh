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
#   full         it failed, and no space was free
#   exit.STATUS  a step that was ended from outside has `finished` only
#   ../.asked.BOOT.TIME   of a step that asked for the time
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

# The clocks now, told by what they were at "SECONDS,UPTIME" and the time since; fails without that.
# Another `date` would tell the same, but for a clock that was set meanwhile.
read_clocks_since() {
    at=${1%,*} up_then=${1##*,}
    up= passed=
    { read -r up rest </proc/uptime; } 2>/dev/null
    # In hundredths, with a leading 1: numbers that begin with 0 are octal.
    case ${EPOCHREALTIME:-},$up_then,$up in
    ,*[0-9].[0-9][0-9],*[0-9].[0-9][0-9])
        passed=$(((${up%.*} - ${up_then%.*}) * 100 + 1${up#*.} - 1${up_then#*.}))
        ;;
    esac
    case $at/${passed:--} in
    */-* | [!0-9]*) return 1 ;;
    *.[0-9][0-9]*/*)
        rest=${at#*.??}
        hundredths=${at#*.} hundredths=${hundredths%"$rest"}
        hundredths=$((passed + 1$hundredths - 100))
        at=$((${at%.*} + hundredths / 100)) hundredths=$((100 + hundredths % 100))
        now=$at.${hundredths#1}$rest,$up
        ;;
    *) return 1 ;;
    esac
}

# Of the steps that begin within a minute one asks for the time, and leaves it to the others.
read_clocks_at_start() {
    asked=
    for name in "${dir%/*}/.asked.$boot".*; do asked=${name#"${dir%/*}/.asked.$boot."}; done
    read_clocks_since "$asked" && [ "$passed" -lt 6000 ] && return
    read_clocks
    [ -z "$boot" ] || [ -n "${EPOCHREALTIME:-}" ] || true >"${dir%/*}/.asked.$boot.$now"
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

# At most $cap bytes of a stream, of which $2 were written if that is known. $end closes it, which
# the step cannot know: half a report has none.
stream() {
    { [ ! -s "$dir/$1" ] || is_printed "$1" "${2:--}" || head -c "$cap" "$dir/$1"; } &&
        echo "benchlab-end $end"
}

# What is short by the shell, which reads a thousand bytes in a fraction of the time of a process.
# Only if it has read as many as were written: a null byte is lost, and some count characters.
is_printed() {
    case $2 in '' | *[!0-9]* | ?????*) return 1 ;; esac
    [ "$2" -le 4000 ] && [ "$2" -le "$cap" ] || return 1
    text=
    while IFS= read -r line; do
        text="$text$line
"
    done <"$dir/$1"
    text=$text$line
    [ ${#text} -eq "$2" ] && PATH=/ printf '%s' "$text"
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
    stream out "${written_out:-}"
    full=
    [ ! -e "$dir/full" ] || full='No space left on device
'
    { printf 'benchlab-err\n%s' "$full" && stream err "${written_err:-}"; } >&2
}
