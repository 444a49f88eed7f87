#!/bin/sh
# sshd of a lab's machine, for BenchLab's key only. /srv/lab is shared with BenchLab: there it finds this machine's
# host key, which it need not trust at first sight, and leaves its own public key.
set -eu

keys=$HOME/host-keys
if [ ! -e "$keys/ed25519" ]; then
    mkdir -p "$keys"
    ssh-keygen -q -t ed25519 -N '' -f "$keys/ed25519"
fi
mkdir -p /srv/lab/hosts
cp "$keys/ed25519.pub" "/srv/lab/hosts/$LAB_NAME.new"
chmod 644 "/srv/lab/hosts/$LAB_NAME.new"
mv "/srv/lab/hosts/$LAB_NAME.new" "/srv/lab/hosts/$LAB_NAME.pub"

exec /usr/sbin/sshd -D -e -f /dev/null -p 2222 -h "$keys/ed25519" \
    -o PidFile=none -o UsePAM=no -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no \
    -o StrictModes=no -o AuthorizedKeysFile=/srv/lab/authorized_keys -o AllowTcpForwarding=yes \
    -o Subsystem='sftp internal-sftp' -o MaxStartups=100 -o MaxSessions=100
