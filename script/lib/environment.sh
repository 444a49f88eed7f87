# Sourced by the scripts next to this folder, after `root` is set to the repository.
#
#   make_environment requirements.txt [extras/s3.txt ...]     or     make_environment tests/requirements.txt
#
# makes $root/.venv (or $BENCHLAB_VENV), installs those files into it, and sets `python` to its
# interpreter. When nothing changed since the last time that takes no time. BENCHLAB_PYTHON names
# the Python to build it with.
#
# The system's own Python is preferred to others of the same version: distributions build it with
# profile-guided optimization, which pyenv leaves out, and BenchLab needs a tenth more CPU without it.

fail() {
    echo "BenchLab: $*" >&2
    exit 1
}

# Prints the first Python that is new enough, and rather one that can make environments: else the
# message below says what to install. 3.11 and 3.12 come first: a Redis wheel fits them.
find_python() {
    candidates=${BENCHLAB_PYTHON:-}
    if [ -z "$candidates" ]; then
        for name in python3.11 python3.12 python3.13 python3.14 python3; do
            candidates="$candidates /usr/bin/$name $name"
        done
    fi
    for needed in 'import ensurepip, venv' ''; do
        for candidate in $candidates; do
            if "$candidate" -c "$needed
import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then
                echo "$candidate"
                return
            fi
        done
    done
    return 1
}

# Whether the packages of this folder are those of a BenchLab that runs now.
lab_runs() {
    lock=${BENCHLAB_VAR:-$root/var}/instance.lock
    command -v flock >/dev/null && [ -e "$lock" ] && ! flock --nonblock "$lock" true 2>/dev/null
}

# For what installs more than a BenchLab needs: its packages must not change while it runs.
keep_apart_from_a_running_lab() {
    [ -z "${BENCHLAB_VENV:-}" ] && lab_runs || return 0
    [ ! -e "$root/.venv/.installed-tests-requirements-txt" ] || return 0
    BENCHLAB_VENV=$root/.venv-tests
    echo "BenchLab runs with .venv: the tools of tests go to .venv-tests (BENCHLAB_VENV)" >&2
}

make_environment() {
    venv=${BENCHLAB_VENV:-$root/.venv}
    python=$venv/bin/python
    mkdir -p "$venv" 2>/dev/null || fail "$venv cannot be written: set BENCHLAB_VENV to another folder"
    # Two scripts started at once must not install at once. A subshell, so that the lock's file
    # descriptor does not live on in the servers. Not .lock: that is uv's own, which would wait for us.
    (
        if command -v flock >/dev/null && touch "$venv/.benchlab-lock" 2>/dev/null; then
            exec 9>"$venv/.benchlab-lock"
            flock 9
        fi
        install_requirements "$@"
    ) || exit 1
}

install_requirements() {
    case $1 in tests/*) set -- requirements.txt extras/archive-export.txt extras/datasets.txt extras/s3.txt "$1" ;; esac
    # An extra that was installed once stays as this version of BenchLab wants it.
    for extra in archive-export datasets s3; do
        [ ! -f "$(stamp_of "extras/$extra.txt")" ] || set -- "$@" "extras/$extra.txt"
    done
    is_there=
    ! "$python" -c '' 2>/dev/null || is_there=1
    for file in "$@"; do
        [ -z "$is_there" ] || [ "$(cat "$(stamp_of "$file")" 2>/dev/null)" != "$(sum_of "$file")" ] || continue
        [ -w "$venv" ] || fail "$venv belongs to somebody else: set BENCHLAB_VENV to another folder"
        install_file "$file"
        sum_of "$file" >"$(stamp_of "$file")"
    done
}

# What a file of requirements and its hashes said when it was installed.
stamp_of() {
    echo "$venv/.installed-$(echo "$1" | tr -c 'A-Za-z0-9\n' '-')"
}

sum_of() {
    (cd "$root" && cat "$1" "${1%.txt}.lock" 2>/dev/null | cksum)
}

install_file() {
    lock=$root/${1%.txt}.lock
    case $1 in
        requirements.txt) what="$(grep -c '==' "$lock") Python packages, 430 MB (140 MB to download)" ;;
        tests/*) what="what tests and script/lint need" ;;
        *) what="the extra $(basename "$1" .txt), $(sed -n 's/^# \([0-9]* MB\).*/\1/p' "$root/$1")" ;;
    esac
    echo "BenchLab: installing $what, into $venv (once)" >&2
    free=$(df -kP "$venv" | awk 'NR == 2 { print int($4 / 1024) }')
    [ -n "$is_there" ] || [ "${free:-1000}" -ge 500 ] || no_room
    log=$(mktemp) && trap 'rm -rf "$log" "$venv/.uv"' EXIT
    if [ -f "$lock" ]; then
        install_packages --require-hashes -r "$lock"
    else
        install_packages -r "$root/$1"
    fi || explain
    rm -f "$log"
}

no_room() {
    fail "$venv has no room for the packages: make room there, 500 MB, or set BENCHLAB_VENV to another folder"
}

# Why packages could not be installed: one line where the reason is a usual one.
explain() {
    case $(cat "$log") in
        *"No space left"* | *"quota exceeded"*) no_room ;;
        *[Pp]roxy*) fail "the proxy ${https_proxy:-${HTTPS_PROXY:-${ALL_PROXY:-}}} brings no packages: correct https_proxy, or unset it" ;;
        *resol* | *refused* | *unreachable* | *"timed out"* | *"Connection reset"*)
            fail "the packages cannot be downloaded: connect this machine, set https_proxy, or PIP_INDEX_URL to an index that it reaches"
            ;;
    esac
    cat "$log" >&2
    fail "the packages could not be installed; the reason is above"
}

# uv takes a tenth of pip's processor time, and downloads several packages at once. Its own wheel has its
# hash as well. Where there is none that fits, pip does all. The pip that Python brings installs it without
# being unpacked, which takes as long as all the rest. It goes when all is installed: 40 MB.
bring_uv() {
    for uv in "$venv/bin/uv" "$venv/.uv/bin/uv"; do
        [ ! -x "$uv" ] || return 0
    done
    "$python" -c '' 2>/dev/null || make_venv --without-pip
    pip=$("$python" -c 'import ensurepip, glob, sysconfig
folder = sysconfig.get_config_var("WHEEL_PKG_DIR") or ensurepip.__path__[0] + "/_bundled"
print(*glob.glob(folder + "/pip-*.whl"))') && PYTHONPATH=$pip "$python" -m pip $quiet --target "$venv/.uv" \
        --require-hashes --only-binary=:all: -r "$root/script/lib/uv.txt" 2>>"$log"
}

# uv compiles nothing, unlike pip: Python does that for the fifth of all files that is ever imported. In a terminal
# it shows how far it is. Where it fails pip tries, for it reads other settings.
install_packages() {
    if bring_uv; then
        if [ -t 2 ]; then
            UV_HTTP_RETRIES=1 "$uv" pip install --python "$python" "$@" && return
        else
            UV_HTTP_RETRIES=1 "$uv" pip install --quiet --python "$python" "$@" 2>>"$log" && return
        fi
    elif grep -q Retrying "$log"; then
        return 1  # nothing answers: pip would wait as long again
    fi
    "$python" -m pip --version >/dev/null 2>&1 || make_venv
    "$python" -m pip $quiet "$@" 2>>"$log"
}
quiet="install --quiet --disable-pip-version-check --no-input --retries 1"

# With pip, or with what is said.
make_venv() {
    base=$(find_python) ||
        fail "Python 3.11 or newer is missing: apt install python3 python3-venv (or brew install python@3.12)"
    "$base" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$base has no venv module: apt install python3-venv"
    "$base" -m venv "$@" "$venv" || fail "$base could not make $venv; its message is above"
}

# Compiles what locale/ has newer texts of, where that can be written.
compile_translations() {
    [ ! -w "$root/locale" ] || "$python" "$root/script/lib/catalog.py"
}
