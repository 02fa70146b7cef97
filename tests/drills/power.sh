#!/usr/bin/env bash
# Power failures during commands: what a backup, a restore, an import or the build of a citation graph has written, and how it resumes; and whether
# omitted flushes are detected. CASES names the cases, all by default. `tests/drills/run power` with POWER_CUTS=200 tries more; POWER_SEED
# selects another series. See power/power.py.
. "$(dirname "$0")/cluster.sh"

cc -shared -fPIC -O2 -o "$WORK/flushes.so" "$HERE/power/flushes.c" -lpthread || fail "the recorder of flushes is not built"
mkdir "$WORK/power"
python3 "$HERE/power/power.py" "$PINAKES" "$WORK/flushes.so" "$WORK/power" ${CASES:-backup restore scicat documents marc citations} || fail "see above"
