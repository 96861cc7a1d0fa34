#!/usr/bin/env bash
# Stands in for `docker compose` in test_restore.py: what is meant for the web container runs on this machine.
set -euo pipefail
[[ $1 == compose ]]
case "${*:2}" in
  "up --detach" | *" stop "* | "--profile backup up "*) echo "docker $*" >>"$LOG" ;;
  "exec -T web lockstep "*) exec "$PYTHON" -m app.cli.main "${@:6}" ;;
  "run --rm -T web lockstep "*) exec "$PYTHON" -m app.cli.main "${@:7}" ;;
  *) echo "unexpected: docker $*" >&2 && exit 64 ;;
esac
