# Makes a marked folder. usage: base_dir.sh + within.sh + this DIR MARK BASE MARK_OF_BASE
within
made=
# A new one is empty.
if mkdir "$dir" 2>/dev/null; then
    made=yes
else
    mkdir -p "$dir" || cannot
    marked "$dir" "$mark" && exit 0
    # What somebody else keeps there must not become ours by a mark.
    [ -z "$(foreign "$dir")" ] || { foreign "$dir"; exit 97; }
fi
set_mark || cannot
