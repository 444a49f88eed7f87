# Claims a base directory, or looks whether it is ours. usage: base_dir.sh + this DIR MARK MOUNT
# Without its disk the folder would be an ordinary one of the disk above it.
near=$dir
while [ ! -e "$near" ]; do near=${near%/*} near=${near:-/}; done
found=$(df -Pk "$near" 2>/dev/null | {
    read -r title
    read -r device blocks used left share mounted rest && echo "$left $mounted"
})
left=${found%% *} mounted=${found#* }
[ -z "$3" ] || [ -z "$mounted" ] || [ "$mounted" = "$3" ] || { echo "$mounted"; exit 89; }
[ -d "$dir" ] || mkdir -p "$dir" || cannot
cd "$dir" || exit 90
if [ -f .benchlab ]; then
    marked . "$mark" || { [ -L .benchlab ] || head -n 1 .benchlab; exit 91; }
elif found=$(foreign .) && [ -n "$found" ] && [ "$found" != commands ]; then
    printf '%s\n' "$found"
    exit 92
else
    set_mark || cannot
fi
for folder in runs clusters leases; do
    [ ! -L "$folder" ] || { echo "$folder"; exit 96; }
    [ -d "$folder" ] || mkdir -p "$folder" || cannot
done
command -v setsid >/dev/null || exit 93
# The kernel tells the real user, the one in effect, and more.
user=
while [ -z "$user" ] && read -r key real effective rest; do
    [ "$key" != Uid: ] || user=$effective
done 2>/dev/null <"/proc/$$/status"
[ "${user:-$(id -u)}" -ne 0 ] || exit 94
echo "benchlab-free $left"
