#!/bin/sh
# Unpacks a kit: unpack.sh TARGET FOLDER...   The folders are those with the pieces of kit.tar.gz, in any
# order. Without them, the pieces lie beside this script, or in folders beside its own.
set -eu
[ $# -ge 1 ] || { echo "usage: unpack.sh TARGET [FOLDER...]" >&2; exit 2; }
target=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || set -- "$here" "$here"/../part-*

pieces=$(for folder in "$@"; do ls "$folder"/kit.tar.gz.* 2>/dev/null || true; done |
  sed 's#.*/##' | sort -u)
count=$(echo "$pieces" | grep -c . || true)
total=$(echo "$pieces" | sed -n '1s/.*-of-//p')
if [ "$count" -eq 0 ] || [ "$count" != "$total" ]; then
  echo "There are $count pieces of ${total:-an unknown number}: $(echo $pieces)" >&2
  exit 1
fi

mkdir -p "$target"
for number in $(seq 1 "$total"); do
  for folder in "$@"; do
    piece=$folder/kit.tar.gz.$number-of-$total
    if [ -e "$piece" ]; then
      cat "$piece"
      break
    fi
  done
done | tar -xzf - -C "$target"
echo "$target/run.sh measures; $target/README.md says what it needs."
