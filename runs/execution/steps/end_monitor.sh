# End what a durable step started, but not the shell that keeps its exit status: INT, TERM, KILL.
# usage: sh -c "$(cat step_record.sh)$this" end DIR
set -u
dir=$1
find_process && is_there || exit 0

# Everything of the step's process group but its leader. The shell reads byte by byte, which takes a
# twentieth of a second for a hundred processes.
others() {
    awk -v leader="$leader" 'BEGIN {
        for (i = 1; i < ARGC; i++) {
            if ((getline <ARGV[i]) > 0) {
                pid = $1
                sub(/.*\) /, "")
                if ($3 == leader && pid != leader) printf "%s ", pid
            }
            close(ARGV[i])
        }
    }' /proc/[0-9]*/stat
}

for signal in INT TERM KILL; do
    for pid in $(others); do kill -s $signal "$pid" 2>/dev/null; done
    waited=0
    while ! has_ended && [ $waited -lt 45 ]; do
        waited=$((waited + 1))
        # Most end at once.
        if [ $waited -le 5 ]; then sleep 0.01; else sleep 0.05; fi
    done
    has_ended && exit 0
done
exit 0
