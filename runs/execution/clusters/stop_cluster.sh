# Stop the PostgreSQL that serves a data directory, whatever its version: fast, immediate, KILL.
# usage: sh -c "$this" stop DATA SECONDS        (SECONDS between two signals)
# Prints "prepared" where the cluster is.
set -u
data=$1
patience=$2
# The mark of a cluster that is loaded (preparing.py).
[ ! -f "${data%/*}/prepared" ] || echo prepared
[ -f "$data/postmaster.pid" ] || exit 0
# Its first line, and the key and number of its shared memory, where it has got so far.
pid= key= segment=
{
    read -r pid
    read -r _data && read -r _began && read -r _port && read -r _socket && read -r _host &&
        read -r key segment
} <"$data/postmaster.pid"
case $pid in
'' | *[!0-9]*) exit 0 ;;
esac

# The file may be old, and the number another process's: a postmaster works in its data directory.
serves() { [ "/proc/$pid/cwd" -ef "$data" ]; }

# Killed and not reaped yet, it counts as running for the next start, which would refuse.
is_reaped() {
    { read -r line <"/proc/$pid/stat"; } 2>/dev/null || return 0
    set -- ${line##*) }
    [ "$1" != Z ]
}

# Whether a PostgreSQL of this account runs. It may keep segments that none of its processes has
# mapped just now, and nothing outside of it says which.
has_neighbours() {
    for each in /proc/[0-9]*; do
        [ -O "$each" ] && read -r name <"$each/comm" || continue
        case $name in
        postgres | postmaster) read -r _id _name state _rest <"$each/stat" && [ "$state" != Z ] && return ;;
        esac
    done
    return 1
}

# Whether a process of the server is left: each works in its data directory. One that was killed may
# still have to end, and has its memory until then.
is_served() {
    for each in /proc/[0-9]*; do
        [ "$each/cwd" -ef "$data" ] && return
    done
    return 1
}

# A server that was killed leaves its shared memory, whose key goes with the data directory, and whose
# dynamic part was noted at its start (postgres.py). What any process has attached or mapped is in use.
# All files are listed before it is asked who runs: one that starts meanwhile has others. The last
# server to end takes what is left.
free_memory() {
    [ -f "$data/postmaster.pid" ] || return 0
    waited=0
    while is_served && [ $waited -lt 50 ]; do
        waited=$((waited + 1))
        sleep 0.1
    done
    while read -r found number _mode _size _creator _last attached _rest; do
        [ "$found/$number/$attached" = "$key/$segment/0" ] && ipcrm -m "$segment"
    done </proc/sysvipc/shm
    set -- /dev/shm/PostgreSQL.*
    noted=$(cat "${data%/*}/shared-memory")
    ! has_neighbours || set --
    for mapped in $noted "$@"; do
        case $mapped in /dev/shm/PostgreSQL.*[!0-9]*) continue ;; /dev/shm/PostgreSQL.*) ;; *) continue ;; esac
        [ -O "$mapped" ] && ! grep -qs " $mapped\$" /proc/[0-9]*/maps && rm -f -- "$mapped"
    done
    return 0
} 2>/dev/null

leave() {
    waited=0
    while ! is_reaped && [ $waited -lt 50 ]; do
        waited=$((waited + 1))
        sleep 0.1
    done
    free_memory
    exit 0
}

for signal in INT QUIT KILL; do
    serves || leave
    kill -s $signal "$pid" 2>/dev/null
    waited=0
    while serves && [ $waited -lt $((patience * 10)) ]; do
        waited=$((waited + 1))
        sleep 0.1
    done
done
serves || leave
exit 1
