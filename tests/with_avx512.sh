#!/bin/sh
# Runs a command where the processor has AVX-512; elsewhere exits with 77, since limits to less would change nothing.
grep -qw avx512f /proc/cpuinfo || { echo "no AVX-512 here: without a limit, the same tests ran as they would with it"; exit 77; }
exec "$@"
