#!/usr/bin/env bash
# Power failures in the middle of commands: what a backup, a restore, an import or a citation graph has made, and goes on with; and that forgotten
# flushes are noticed. CASES names those to try; without it the citation graph, which has hundreds of flushes, is left to its own tests
# (CASES=citations). `tests/drills/run power` with POWER_CUTS=200 tries more; POWER_SEED begins another series. See power/power.py.
. "$(dirname "$0")/cluster.sh"

cc -shared -fPIC -O2 -o "$WORK/flushes.so" "$HERE/power/flushes.c" -lpthread || fail "the recorder of flushes is not built"
mkdir "$WORK/power"
python3 "$HERE/power/power.py" "$PINAKES" "$WORK/flushes.so" "$WORK/power" ${CASES:-backup restore scicat documents marc} || fail "see above"
