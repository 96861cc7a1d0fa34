#!/usr/bin/env bash
# Stands in for `docker compose` in test_backup.py: what is meant for a container runs on this machine. The database
# comes up as the image of PostgreSQL does it: a first server on its socket only, which is then replaced.
set -euo pipefail
as=()
((EUID)) || as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
postgres() { "${as[@]}" "$@" >>"$LOG" 2>&1; }

start_database() {
  install -d -m 700 "$DATABASE"
  touch "$LOG"
  ((EUID)) || chown postgres: "$DATABASE" "$(dirname "$DATABASE")"
  (
    cd /
    postgres initdb --pgdata "$DATABASE" --username lockstep --auth trust --encoding UTF8 --no-sync
    options="-c unix_socket_directories='$PGHOST' -c fsync=off -p $PGPORT"
    postgres pg_ctl --pgdata "$DATABASE" --wait start --options "$options -c listen_addresses=''"
    postgres createdb --username lockstep lockstep
    sleep 1
    postgres pg_ctl --pgdata "$DATABASE" --mode fast --wait stop
    postgres pg_ctl --pgdata "$DATABASE" --wait start --options "$options -c listen_addresses=127.0.0.1"
  ) </dev/null >>"$LOG" 2>&1 &
}

[[ $1 == compose ]]
case "${*:2}" in
  "up --detach db") start_database ;;
  "up --detach") echo "started everything" >>"$LOG" ;;
  "down") cd / && postgres pg_ctl --pgdata "$DATABASE" --mode immediate stop ;;
  "exec -T db "*) exec "${@:5}" ;;
  "exec -T web "*) exec "${@:5:2}" "$DATA" "${@:8}" ;;           # tar -C /var/lib/lockstep …
  "run --rm --no-deps -T web "*) exec "${@:7:2}" "$DATA" "${@:10}" ;;
  *) echo "unexpected: docker $*" >&2 && exit 64 ;;
esac
