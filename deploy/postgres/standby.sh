#!/bin/sh
# At the first start copies the primary (PGHOST, PGUSER, PGPASSWORD), at every start follows it.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # Under a name of its own until it is whole: a copy that was interrupted is begun anew.
    rm -rf "$PGDATA.partial"
    mkdir -p "$(dirname "$PGDATA")"
    pg_basebackup --pgdata="$PGDATA.partial" --write-recovery-conf --slot=standby --checkpoint=fast
    [ ! -d "$PGDATA" ] || rmdir "$PGDATA"
    mv "$PGDATA.partial" "$PGDATA"
fi

exec postgres -D "$PGDATA" "$@"
