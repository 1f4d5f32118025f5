#!/bin/sh
# Refreshes all masked views of a database, and publishes again what has changed: nightly.sh clinic.duckdb
# It prints only what is not well, and ends with the worst exit code of its steps.
worst=0
for step in refresh publish; do
    kanon-duck "$step" "$1" --quiet --wait 600
    code=$?
    [ "$code" -gt "$worst" ] && worst=$code
done
exit "$worst"
