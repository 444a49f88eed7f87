# Looks whether a folder is ours. usage: base_dir.sh + within.sh + this DIR MARK BASE MARK_OF_BASE
[ -e "$dir" ] || [ -L "$dir" ] || exit 0
within
marked "$dir" "$mark" || { [ -n "$(foreign "$dir")" ] && exit 97; exit 0; }
for part in "$dir/data" "$dir/steps" "$dir/prepared"; do
    [ ! -L "$part" ] || { echo "$part"; exit 96; }
done
