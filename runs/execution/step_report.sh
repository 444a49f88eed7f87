# Report the durable step in $dir: its status, its times, and at most $cap bytes of each stream.
# What follows a script that has set both; `-` is what the step has not left.
length() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }
out=$(length "$dir/out")
err=$(length "$dir/err")
[ "$out" -gt "$cap" ] && out=$cap
[ "$err" -gt "$cap" ] && err=$cap
link() { readlink "$dir/$1" || echo -; }
cpu=$(sed -n '2s/ /,/p' "$dir/times" 2>/dev/null)
echo "benchlab-step $(link exit) $(link started) $(link finished) $out $err ${cpu:--}"
[ "$out" -gt 0 ] && head -c "$out" "$dir/out"
[ "$err" -gt 0 ] && head -c "$err" "$dir/err"
exit 0
