# Sample what the kernel counts of each process of a server and each thread of the load: its time on a
# processor, and in the queue for one. It ends when the file STOP is there, or the server is gone.
# usage: sh -c "$this" run-queue PAUSE DATA STEPS STOP
#   PAUSE in seconds; the load are the steps whose names begin with "pgbench" in the folder STEPS
# A line for each process or thread when it ends, and for the others at the end:
#   KIND TITLE FIRST LAST RUN WAIT
# separated by tabs; seconds since the boot, and nanoseconds since the sampling began. Reading takes
# no process; only the pause does, which is why it is not shorter.
export LC_ALL=C
pause=$1 data=$2 steps=$3 stop=$4
read -r postmaster <"$data/postmaster.pid" || exit 1
[ -r "/proc/$postmaster/schedstat" ] || { echo "no schedstat" >&2; exit 1; }
exec awk -v pause="$pause" -v postmaster="$postmaster" -v steps="$steps" -v stop="$stop" '
    function read_line(file,   got) {
        line = ""
        got = (getline line <file)
        close(file)
        return got > 0
    }
    function children(pid) { return read_line("/proc/" pid "/task/" pid "/children") ? line : "" }
    function words_of(command,   all) {
        all = ""
        while ((command | getline line) > 0) all = all " " line
        close(command)
        return all
    }
    # A server process has the title of the postmaster until it knows what it will do.
    function title_of(pid) {
        if (!read_line("/proc/" pid "/cmdline")) return ""
        gsub(/[^ -~]/, " ", line)
        line = substr(line, 1, 60)
        sub(/ +$/, "", line)
        return line
    }
    function sample(kind, id, file,   counted) {
        if (!read_line(file) || split(line, counted, " ") < 2) return
        if (!(id in first)) {
            first[id] = now; kinds[id] = kind
            # What runs already has its own past; what begins later has none.
            run_then[id] = tick == 1 ? counted[1] : 0
            wait_then[id] = tick == 1 ? counted[2] : 0
        }
        if (kind == "server" && title[id] !~ /^postgres: /) title[id] = title_of(id)
        run[id] = counted[1]; wait[id] = counted[2]; last[id] = now; seen[id] = tick
    }
    function tell(id) {
        printf "%s\t%s\t%s\t%s\t%.0f\t%.0f\n", kinds[id], title[id], first[id], last[id],
            run[id] - run_then[id], wait[id] - wait_then[id]
        delete first[id]; delete seen[id]; delete title[id]
    }
    # The leader of a step is its shell; its children are the load.
    function find_threads(   n, i, pids, leaders, leader, all) {
        if (load == "") {
            n = split(words_of("ls -d " steps "/pgbench*/process.* 2>/dev/null"), leaders, " ")
            for (i = 1; i <= n; i++) {
                leader = leaders[i]
                sub(/.*\/process\./, "", leader); sub(/\..*/, "", leader)
                load = load children(leader)
            }
        }
        n = split(load, pids, " ")
        for (i = 1; i <= n; i++) all = all " /proc/" pids[i] "/task/*"
        return n ? words_of("ls -d" all " 2>/dev/null") : ""
    }
    BEGIN {
        while (read_line("/proc/" postmaster "/schedstat")) {
            ended = (getline line <stop) >= 0
            close(stop)
            tick++
            read_line("/proc/uptime")
            now = substr(line, 1, index(line, " ") - 1)
            n = split(children(postmaster), pids, " ")
            for (i = 1; i <= n; i++) sample("server", pids[i], "/proc/" pids[i] "/schedstat")
            # All threads are there soon after the first is; each look is a process. The first look
            # comes early, for on a busy machine a short load has few ticks.
            if (tick % (looks ? 5 : 2) == 0 && looks < 2 && (threads = find_threads()) != "") looks++
            n = split(threads, tasks, " ")
            for (i = 1; i <= n; i++) {
                id = tasks[i]
                sub(/.*\//, "", id)
                sample("load", id, tasks[i] "/schedstat")
            }
            for (id in seen) if (ended || seen[id] < tick) tell(id)
            fflush()
            if (ended) exit 0
            system("exec sleep " pause)
        }
    }'
