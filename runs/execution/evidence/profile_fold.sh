# Fold what perf recorded into one line a stack, the most frequent first: "COMMAND;OUTER;...;INNER N".
# usage: sh -c "$this" fold FOLDER LINES NAMELESS [FILE]      (FILE is perf.data)
# At most LINES of them; a process that perf knows by its number only is called NAMELESS.
export LC_ALL=C PERF_CONFIG=/dev/null
perf script --no-inline -F comm,ip,sym,dso -i "$1/${4:-perf.data}" 2>/dev/null |
    awk -v nameless="$3" '
    function flush(    at, stack) {
        if (!seen) return
        stack = command
        for (at = depth; at > 0; at--) stack = stack ";" frame[at]
        count[stack]++
        seen = depth = 0
    }
    NF == 0 { flush(); next }
    /^[^ \t]/ { flush(); sub(/[ \t]+$/, ""); gsub(/;/, ":"); command = $0; seen = 1 }
    /^:-?[0-9]+$/ { command = nameless }
    /^[^ \t]/ { next }
    {
        file = ""
        if (match($0, / \([^()]*\)$/)) {
            file = substr($0, RSTART + 2, RLENGTH - 3)
            $0 = substr($0, 1, RSTART - 1)
        }
        sub(/^[ \t]*[0-9a-f]+ ?/, "")
        name = $0
        kernel = file ~ /^\[(kernel|guest\.kernel)/ || file ~ /\.ko(\.[a-z]+)?$/
        if (name == "" || name == "[unknown]") {
            sub(/.*\//, "", file)
            name = (file == "" || file ~ /^\[/) ? (file == "" ? "[unknown]" : file) : "[" file "]"
        }
        gsub(/;/, ":", name)
        frame[++depth] = kernel ? name "_[k]" : name
    }
    END { flush(); for (stack in count) print count[stack] "\t" stack }' |
    sort -rn | head -n "$2" | awk -F '\t' '{ print $2 " " $1 }'
