#!/bin/sh
# Makes the password of Compose's database once, and keeps it in files of a volume, so that nobody has to choose one and
# none is in `docker inspect`. With --new it makes another; change.sql then tells a running database.
set -eu
umask 077
folder=/run/database-password
random() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
keep() { # NAME OWNER TEXT
  printf %s "$3" >"$folder/$1.new"
  chown "$2" "$folder/$1.new"
  mv "$folder/$1.new" "$folder/$1"
}

if [ "${1:-}" = --new ]; then
  password=$(random)
elif [ -n "${LOCKSTEP_DB_PASSWORD:-}" ]; then
  password=$LOCKSTEP_DB_PASSWORD
elif [ -s "$folder/password" ]; then
  exit
elif [ -e /var/lib/postgresql/data/PG_VERSION ]; then
  password=lockstep # what a database got by default before there was this file
else
  password=$(random)
fi
keep password postgres "$password"
keep url 10001 "postgresql+asyncpg://lockstep:$password@db/lockstep"
keep change.sql root "ALTER ROLE lockstep PASSWORD '$password';"
