#!/usr/bin/env bash
# The tables can be spread over machines by hash: every unique key of a table contains the column by which the table
# declares to be distributed, or the table declares to be copied everywhere. All kinds of all dialects are checked.
. "$(dirname "$0")/cluster.sh"

make_cluster db
start_cluster db
"$PINAKES" tenant add drill --data "$WORK/data" --database "$(url_of db)" >/dev/null
tables=$(sql db "SELECT count(*) FROM pg_tables WHERE schemaname = 'pinakes:default'")
undeclared=$(sql db "
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'pinakes:default' AND c.relkind = 'r'
      AND coalesce(obj_description(c.oid, 'pg_class'), '') !~ '^(distributed by [a-z]+|copied everywhere)$'
    ORDER BY 1")
[ -z "$undeclared" ] || fail "tables that do not say how they are distributed: $undeclared"
against=$(sql db "
    SELECT c.relname || ' (' || obj_description(c.oid, 'pg_class') || '): ' || pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'pinakes:default' AND c.relkind = 'r' AND i.indisunique
      AND obj_description(c.oid, 'pg_class') <> 'copied everywhere'
      AND NOT EXISTS (
          SELECT 1 FROM pg_attribute a
          WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[])
            AND 'distributed by ' || a.attname = obj_description(c.oid, 'pg_class'))
    ORDER BY 1")
[ -z "$against" ] || fail "unique keys without the column of distribution: $against"
spread=$(sql db "
    SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'pinakes:default' AND c.relkind = 'r' AND obj_description(c.oid, 'pg_class') LIKE 'distributed by %'")
[ "$spread" -gt 0 ] || fail "no table is spread"
everywhere=$(sql db "
    SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'pinakes:default' AND c.relkind = 'r' AND obj_description(c.oid, 'pg_class') = 'copied everywhere'")
say "$tables tables: $spread spread by a column of every unique key, $everywhere copied everywhere"
