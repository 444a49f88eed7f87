# Remove the folder $dir with the mark $mark, and nothing else. What follows the part that has set
# them, and that knows `within`, `marked` and `foreign` (base_dir.py).
[ -e "$dir" ] || [ -L "$dir" ] || exit 0
within
# A removal whose connection broke goes on: the next one waits for it. What has been made in its
# place meanwhile is not what was to be removed.
same() {
    [ -e "$dir" ] && { [ ! -e "/proc/self/fd/9" ] || [ "$dir" -ef "/proc/self/fd/9" ]; }
}
if { command exec 9<"$dir"; } 2>/dev/null && command -v flock >/dev/null; then
    flock 9 2>/dev/null
fi
same || exit 0
# Empty and unmarked is what an interrupted making or removal leaves, and is no harm.
marked "$dir" "$mark" || { [ -n "$(foreign "$dir")" ] && exit 97; exit 0; }
# Not through links, and not into what is mounted there. The mark goes last, so that what an
# interrupted removal left is still known as ours.
remove() {
    find "$dir" -xdev -mindepth 1 -depth ! -path "$dir/.benchlab" -delete &&
        rm -f -- "$dir/.benchlab" && rmdir -- "$dir"
}
# Where nothing can be locked two of them stumble over each other.
tries=0
until remove; do
    same || exit 0
    tries=$((tries + 1))
    [ $tries -lt 4 ] || exit 90
    sleep 0.5
done
