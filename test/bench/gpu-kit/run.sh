#!/bin/sh
# Measures, in the folder of an unpacked kit. README.md has the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# The kit's own libraries come first. Containers have those of NVIDIA's driver in a folder of their own.
LD_LIBRARY_PATH=$here/lib:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$here/node" "$here/app/driver.mjs" --data "$here/data" \
  --chromium "$here/chromium/chromium-headless-shell" "$@"
