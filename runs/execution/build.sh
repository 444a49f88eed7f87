# Builds a commit of PostgreSQL from a clone on this machine.
# usage: sh -c "$this" build REPOSITORY COMMIT FOLDER SECONDS BYTES OPTION...
#
# Whatever the commit's own scripts do happens as this user: an administrator has allowed it.
#   FOLDER/source   the commit's files, removed at the end      FOLDER/log   what was printed
#   FOLDER/pg       the installation
# Its last line is "benchlab-build WORD". Where the word is not "done", the end of the log precedes it.
set -u
umask 022
export LC_ALL=C GIT_TERMINAL_PROMPT=0
repository=$1 commit=$2 folder=$3 seconds=$4 bytes=$5
shift 5
source=$folder/source prefix=$folder/pg log=$folder/log

end() {
    [ "$1" = done ] || tail -c 8000 "$log"
    rm -rf "$source"
    [ "$1" = done ] || rm -rf "$prefix"
    echo
    echo "benchlab-build $1"
    exit 0
}
# The clone may be somebody else's: it is only read.
from_clone() { git -c safe.directory="$repository" -C "$repository" "$@"; }
# Only what a branch or tag of the clone has: any commit of a fork can be asked of some servers.
is_known() { [ -n "$(from_clone for-each-ref --count=1 --contains "$commit" 2>/dev/null)" ]; }
limited() {
    left=$((end_at - $(date +%s)))
    [ "$left" -gt 0 ] || end too_long
    # In the group of the step, by which all of it is ended.
    if timeout --foreground 1 true 2>/dev/null; then
        timeout --foreground -k 5 "$left" "$@"
    else
        "$@"
    fi >>"$log" 2>&1
    status=$?
    [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || end too_long
    return "$status"
}

rm -rf "$source" "$prefix"
: >"$log" || exit 90
# No file of a build is as large as all that it may use.
ulimit -f $((bytes / 512)) 2>/dev/null
end_at=$(($(date +%s) + seconds))
for program in git tar make; do
    command -v "$program" >/dev/null || { echo "$program is missing" >>"$log"; end missing_program; }
done
from_clone rev-parse --git-dir >>"$log" 2>&1 || end no_clone
is_known || {
    limited git -c safe.directory="$repository" -C "$repository" fetch -q origin
    is_known
} || end unknown_commit
mkdir "$source" || exit 90
from_clone archive --format=tar "$commit" 2>>"$log" | tar -x -C "$source" 2>>"$log" || end no_source
cd "$source" || exit 90
[ -x configure ] || { echo "there is no configure" >>"$log"; end no_source; }
jobs=$(nproc 2>/dev/null || echo 1)
limited ./configure --prefix="$prefix" "$@" || end build_failed
limited make -s -j"$jobs" || end build_failed
limited make -s install || end build_failed
if [ -f contrib/Makefile ]; then
    limited make -s -j"$jobs" -C contrib || end build_failed
    limited make -s -C contrib install || end build_failed
fi
[ -x "$prefix/bin/postgres" ] || { echo "no postgres was installed" >>"$log"; end build_failed; }
end done
