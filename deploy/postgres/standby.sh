#!/bin/sh
# Copies the primary (PGHOST, PGUSER, PGPASSWORD) on the first start, and follows it on every start.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # Copied under another name, so that an interrupted copy starts over.
    rm -rf "$PGDATA.partial"
    mkdir -p "$(dirname "$PGDATA")"
    pg_basebackup --pgdata="$PGDATA.partial" --write-recovery-conf --slot=standby --checkpoint=fast
    [ ! -d "$PGDATA" ] || rmdir "$PGDATA"
    mv "$PGDATA.partial" "$PGDATA"
fi

exec postgres -D "$PGDATA" "$@"
