# The folder above must be the claimed base directory or really be below it: links may lead out.
# usage: base_dir.sh + this DIR MARK BASE MARK_OF_BASE
base=$3 base_mark=$4
within() {
    marked "$base" "$base_mark" || exit 91
    above=${dir%/*}
    while [ ! -d "$above" ]; do above=${above%/*}; done
    real_base=$(cd -P "$base" && pwd -P) && real_above=$(cd -P "$above" && pwd -P) || exit 96
    case $real_above/ in "$real_base"/*) ;; *) echo "$real_above"; exit 96 ;; esac
    [ ! -L "$dir" ] || { echo "$dir"; exit 96; }
}
