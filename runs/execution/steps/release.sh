# Gives a base directory back. usage: base_dir.sh + this DIR MARK
[ -d "$dir" ] && marked "$dir" "$mark" || exit 0
cd "$dir" || exit 90
left=$(find runs clusters builds -mindepth 1 -maxdepth 1 ! -name .benchlab 2>/dev/null | head -n 5)
[ -z "$left" ] || { echo "$left"; exit 98; }
# The fence's files are empty and have numbers for names; whatever else lies there stays.
[ -L leases ] || rm -f leases/[0-9]*/[0-9]*
[ -L builds ] || rm -f builds/.benchlab
rmdir runs clusters builds leases/[0-9]* leases 2>/dev/null
rm -f .benchlab
