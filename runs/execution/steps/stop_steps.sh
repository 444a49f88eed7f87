# End every durable step in a folder that still runs, with all its processes: INT, TERM, KILL.
# One that leaves no exit status gets `finished` from here.
# usage: sh -c "$(cat step_record.sh)$this" stop STEPS SECONDS
#                                      (SECONDS between two signals; after KILL 20 times that)
#
# Numbers of processes are given anew, after a restart at once: nothing is signalled that is not
# known to be the step's.
set -u
steps=$1
patience=$2
left=0
# For steps whose own record does not tell their boot: that in which the run began here.
noted=
{ read -r noted <"$steps/../boot"; } 2>/dev/null

group() { kill -s 0 -- "-$leader" 2>/dev/null; }

# Without those that have ended and are not reaped, as in a container they may never be.
members() {
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        pid=${stat#/proc/}
        set -- ${line##*) }
        [ "${3:-}" = "$leader" ] && [ "$1" != Z ] && printf '%s ' "${pid%/stat}"
    done 2>/dev/null
}

# By the environment that the step gave it, or by its streams, which a program cannot lose that
# writes its title over its environment.
is_of_step() {
    { tr '\0' '\n' <"/proc/$1/environ" | grep -q -x -F "BENCHLAB_STEP=$dir"; } 2>/dev/null && return
    for stream in 0 1 2; do
        case $(readlink "/proc/$1/fd/$stream" 2>/dev/null) in
            "$real/in" | "$real/out" | "$real/err") return 0 ;;
        esac
    done
    return 1
}

# The step's own leader, or a group without one to which the step's processes belong: then all of
# it is the step's, since a group lies within one session.
ours() {
    [ "${begun_in:-${noted:-$boot}}" = "$boot" ] || return 1
    start_time "$leader"
    if [ -n "$start" ]; then
        [ "$start" = "$begun" ]
        return
    fi
    real=$(cd -P "$dir" && pwd -P) || return 1
    for pid in $(members); do
        is_of_step "$pid" && return 0
    done
    return 1
}

# Looking ten times a second leaves no time for the number of a group to be given anew.
end() {
    for signal in INT TERM KILL; do
        kill -s $signal -- "-$leader" 2>/dev/null
        waited=0
        looks=$((patience * 10))
        # What waits for its disk, such as `sync`, obeys KILL only when that has answered.
        [ $signal = KILL ] && looks=$((looks * 20))
        while group; do
            [ $signal = KILL ] && [ -z "$(members)" ] && return 0
            [ $waited -lt $looks ] || continue 2
            waited=$((waited + 1))
            sleep 0.1
        done
        return 0
    done
    return 1
}

# From now on none is begun there (step.sh): one may be on its way.
{ true >"$steps/.ended"; } 2>/dev/null
for dir in "$steps"/*; do
    has_ended && continue
    find_process && ours || continue
    end || left=1
    has_ended && continue
    read_clocks
    { true >"$dir/finished.$now"; } 2>/dev/null
done
exit $left
