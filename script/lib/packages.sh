# Sourced by script/test and .ci/run: what Python packages cannot bring.

PATH=$PATH:/usr/sbin:/sbin
export PATH

have() {
    command -v "$1" >/dev/null
}

# Prints those that tests can do without: the shell needs two thirds of chromium's processor time.
helpful_packages() {
    have chromium-headless-shell || echo chromium-headless-shell
    # Login shells that targets may have; tests of one that is missing are skipped.
    have zsh && have fish && have tcsh || echo zsh fish tcsh
    # What is deployed is executed: alerts by promtool, the proxy's file by nginx.
    have promtool || echo prometheus
    have nginx || echo nginx-light
    # Charts as PNG are written with it, where they have Japanese words.
    ls /usr/share/fonts/truetype/vlgothic/*.ttf >/dev/null 2>&1 || echo fonts-vlgothic
    # Without it the environment is built with another Python, if there is one: see environment.sh.
    [ ! -x /usr/bin/python3.11 ] || /usr/bin/python3.11 -c "import ensurepip" 2>/dev/null || echo python3.11-venv
}

# Prints the Debian packages that some test needs and that are missing.
missing_packages() {
    have chromium-headless-shell || have chromium || have chromium-browser || have google-chrome || echo chromium
    have sshd && have ssh || echo openssh-server openssh-client
    have sudo || echo sudo
    have perf || echo linux-perf
    have sadf || echo sysstat
    have fio || echo fio
    have pgbouncer || echo pgbouncer
    have unshare || echo util-linux
    # Networks and clocks of their own.
    [ "$(id -u)" -ne 0 ] || have ip || echo iproute2
    ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || echo libfaketime
}
