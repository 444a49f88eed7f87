# pg_ctl looks ten times a second whether the server has started or stopped, which is longer than
# most take. The first second it is looked for more often here; pg_ctl itself tells what failed.
# usage: sh -c "$this" promptly DATA start|stop COMMAND...
data=$1 wanted=$2
shift 2
look() {
    pid= begun= status=
    { {
        read -r pid && read -r folder && read -r begun && read -r port
        read -r sockets && read -r address && read -r memory && read -r status
    } <"$data/postmaster.pid"; } 2>/dev/null
}
is_done() {
    look
    case $wanted.$status in
    start.ready | start.standby) [ "$pid $begun" != "$before" ] ;;
    stop.*) [ ! -e "$data/postmaster.pid" ] ;;
    *) false ;;
    esac
}
# For stop_cluster.sh, should the server be killed.
note_memory() {
    while read -r _range _mode _offset _device _inode mapped; do
        case $mapped in /dev/shm/PostgreSQL.*) echo "$mapped" ;; esac
    done <"/proc/$pid/maps" >"${data%/*}/shared-memory"
}
look
before="$pid $begun"
[ $wanted = start ] || [ -n "$pid" ] || exec "$@"
"$@" &
looks=0
while [ $looks -lt 25 ]; do
    looks=$((looks + 1))
    case $looks in
    1) sleep 0.02 ;;
    2) sleep 0.03 ;;
    *) sleep 0.05 ;;
    esac
    if is_done && kill "$!" 2>/dev/null; then
        [ $wanted = stop ] || note_memory
        echo " done"
        [ $wanted = start ] && echo "server started" || echo "server stopped"
        exit 0
    fi
    kill -s 0 "$!" 2>/dev/null || break
done
wait "$!"
result=$?
# pg_ctl has seen it first, as after more than a second.
[ $wanted.$result = start.0 ] && is_done && note_memory
exit $result
