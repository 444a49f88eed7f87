# Report the durable step in $dir: its status, its times, and at most $cap bytes of each stream.
# What follows a script that has set both; `-` is what the step has not left.
measure() {
    length=0
    # Some print blanks before the number.
    if [ -f "$1" ] && [ -s "$1" ]; then length=$(($(wc -c <"$1"))); fi
    [ "$length" -le "$cap" ] || length=$cap
}
# What the first name tells that begins so; the shell sorts them.
told() {
    told=-
    for name in "$1".*; do
        if [ -e "$name" ]; then told=${name#"$1".}; fi
        return
    done
}
measure "$dir/out"
out=$length
measure "$dir/err"
err=$length
told "$dir/exit"
report=$told
told "$dir/started"
report="$report $told"
told "$dir/finished"
report="$report $told"
# The second line has what the children took: user and system.
user= system=
{ { read -r line && read -r user system; } <"$dir/times"; } 2>/dev/null
echo "benchlab-step $report $out $err ${user:+$user,}${system:--}"
[ "$out" -gt 0 ] && head -c "$out" "$dir/out"
[ "$err" -gt 0 ] && head -c "$err" "$dir/err"
exit 0
