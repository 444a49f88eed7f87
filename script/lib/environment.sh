# Sourced by the scripts next to this folder, after `root` is set to the repository.
#
#   make_environment requirements.txt [more requirement files]
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
    stamp=$(stamp_of "$@")
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(sum_of "$@")" ] && "$python" -c '' 2>/dev/null; then
        return
    fi
    [ -w "$venv" ] || fail "$venv belongs to somebody else: set BENCHLAB_VENV to another folder"
    packages=$(grep -c '==' "$root/requirements.lock")
    echo "BenchLab: installing $packages Python packages into $venv, 620 MB (once; seconds to minutes)" >&2
    bring_uv || true
    # By hash first: what follows then finds all that requirements.txt asks for.
    install_packages --require-hashes -r "$root/requirements.lock" ||
        fail "pip could not install requirements.lock; its message is above"
    for file in "$@"; do
        install_packages -r "$root/$file" || fail "pip could not install $file; its message is above"
    done
    sum_of "$@" >"$stamp"
    # The other files ask for all of that one, so script/server finds nothing to do.
    sum_of requirements.txt >"$(stamp_of requirements.txt)"
}

# Files of requirements, and what they said when they were installed.
stamp_of() {
    echo "$venv/.installed-$(echo "$*" | tr -c 'A-Za-z0-9\n' '-')"
}

sum_of() {
    (cd "$root" && cat requirements.txt requirements.lock "$@" | cksum)
}

# uv takes a tenth of pip's processor time, and downloads several packages at once. Its own wheel has its
# hash as well. Where there is none that fits, pip does all. The pip that Python brings installs it without
# being unpacked, which takes as long as all the rest.
bring_uv() {
    [ ! -x "$venv/bin/uv" ] || return 0
    "$python" -c '' 2>/dev/null || make_venv --without-pip
    pip=$("$python" -c 'import ensurepip, glob, sysconfig
folder = sysconfig.get_config_var("WHEEL_PKG_DIR") or ensurepip.__path__[0] + "/_bundled"
print(*glob.glob(folder + "/pip-*.whl"))') && PYTHONPATH=$pip "$python" -m pip $quiet --require-hashes --only-binary=:all: -r "$root/script/lib/uv.txt" 2>/dev/null
}

# uv compiles nothing, unlike pip: Python does that for the fifth of all files that is ever imported.
# Where uv fails pip tries, for it reads other settings, and its message is the one that people know.
install_packages() {
    uv=$venv/bin/uv
    { [ -x "$uv" ] && "$uv" pip install --quiet --python "$python" "$@" 2>/dev/null; } ||
        install_by_pip "$@"
}

install_by_pip() {
    "$python" -m pip --version >/dev/null 2>&1 || make_venv
    "$python" -m pip $quiet "$@"
}
quiet="install --quiet --disable-pip-version-check --no-input"

# With pip, or with what is said.
make_venv() {
    base=$(find_python) ||
        fail "Python 3.11 or newer is missing: apt install python3 python3-venv (or brew install python@3.12)"
    "$base" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$base has no venv module: apt install python3-venv"
    "$base" -m venv "$@" "$venv" || fail "$base could not make $venv; its message is above"
}

# Compiles what locale/ has newer texts of. Another BenchLab may read the same file right now: a
# finished one takes its place at once.
compile_translations() {
    [ -w "$root/locale" ] || return 0
    for catalog in "$root"/locale/*/LC_MESSAGES/django.po; do
        compiled=${catalog%.po}.mo
        [ -z "$(find "$catalog" ! -newer "$compiled" 2>/dev/null)" ] || continue
        language=${catalog%/LC_MESSAGES/*}
        "$python" -m babel.messages.frontend compile --input-file "$catalog" \
            --output-file "$compiled.$$" --locale "${language##*/}" >/dev/null 2>&1 &&
            mv "$compiled.$$" "$compiled" || { rm -f "$compiled.$$"; return 1; }
    done
}
