# What the scripts of a base directory share. usage: ... DIR MARK
set -u
umask 077
export LC_ALL=C
dir=$1 mark=$2
cannot() {
    rm -f "$dir/.benchlab.new"
    left=$(free "$dir")
    # Without a mark no later clean-up would know it as ours.
    [ -z "${made-}" ] || rmdir "$dir"
    [ "${left:-64}" -lt 64 ] && exit 95
    exit 90
}
# Whole or not at all: a mark that was cut off by a full disk would be nobody's. Never through a
# link that somebody has laid there.
set_mark() {
    if [ -e "$dir/.benchlab.new" ] || [ -L "$dir/.benchlab.new" ]; then
        rm -f "$dir/.benchlab.new" || return 1
    fi
    (set -C && echo "$mark" >"$dir/.benchlab.new") && mv "$dir/.benchlab.new" "$dir/.benchlab"
}
# By the shell itself, as this is asked several times in each run.
marked() {
    [ ! -L "$1/.benchlab" ] && [ -f "$1/.benchlab" ] || return 1
    found= more=
    { { IFS= read -r found; IFS= read -r more; } <"$1/.benchlab"; } 2>/dev/null
    [ "$found" = "$2" ] && [ -z "$more" ]
}
# The first names of what others keep there.
foreign() {
    names=0
    for name in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        [ -e "$name" ] || [ -L "$name" ] || continue
        [ "${name##*/}" != .benchlab.new ] || continue
        printf '%s\n' "${name##*/}"
        names=$((names + 1))
        [ $names -lt 5 ] || break
    done
}
