#!/bin/sh
# The first program of the runner's container. It starts as root, gives the supervisor a cgroup in which that can make
# one for each session, gives up all rights, and becomes the supervisor. No code of a learner runs before that. If there
# is no such cgroup to be had, it says why, and the supervisor refuses to run untrusted code.
set -eu
cgroups=/sys/fs/cgroup
user=lockstep

# The user may fill and divide the group, but not change the limits of the group itself.
delegate() {
  mkdir -p "$1"
  echo "$2" >"$1/cgroup.procs" # first: without CAP_DAC_OVERRIDE, root cannot write to the user's files
  for file in "$1" "$1/cgroup.procs" "$1/cgroup.threads" "$1/cgroup.subtree_control" "$1/tasks"; do
    [ ! -e "$file" ] || chown "$user:$user" "$file"
  done
}

version_2() {
  mount -o remount,rw "$cgroups"
  mkdir -p "$cgroups/init" # a group that is divided may not hold processes itself
  for process in $(cat "$cgroups/cgroup.procs"); do
    echo "$process" 2>/dev/null >"$cgroups/init/cgroup.procs" || [ ! -e "/proc/$process" ]
  done
  echo "+memory +pids +cpu" >"$cgroups/cgroup.subtree_control"
  delegate "$cgroups/lockstep" "$1"
}

version_1() {
  for controller in memory pids cpu cpuacct; do
    mount -o remount,rw,bind "$cgroups/$controller"
    delegate "$cgroups/$controller/lockstep" "$1"
  done
}

if [ "$1" = --delegate ]; then
  export LIBMOUNT_FORCE_MOUNT2=always # docker/runner.seccomp.json allows mount(2), not the calls that came after it
  if [ -e "$cgroups/cgroup.controllers" ]; then version_2 "$2"; else version_1 "$2"; fi
  exit
fi
[ "$(id -u)" = 0 ] || exec "$@"
if ! why=$("$0" --delegate "$$" 2>&1); then # in a process of its own, because set -e does not count in a condition
  why=$(printf '%s' "$why" | sed -n '1s/\.$//; 1p')
  echo "There is no cgroup for sessions, so their memory cannot be limited: $why. See docs/operate/safety.md." >&2
fi
exec setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs -- "$@"
