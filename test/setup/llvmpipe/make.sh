#!/bin/sh
# Makes a Chromium whose WebGPU is Mesa's llvmpipe: with half precision and subgroups, and no GPU.
#
#   CHROMIUM_PATH=$(sh test/setup/llvmpipe/make.sh FOLDER) npx vitest run --project browser
#
# For Debian 13 and later, whose LLVM is 19; with 15, that of Debian 12, one kernel takes it minutes.
# Needs the packages chromium, mesa-vulkan-drivers, libvulkan1 and gcc. Nothing installed is changed.
set -eu

say() { echo "$*" >&2; exit 1; }

[ $# -eq 1 ] || say 'Name the folder to make: make.sh FOLDER'
here=$(cd "$(dirname "$0")" && pwd)
driver=/usr/share/vulkan/icd.d/lvp_icd.json
[ -e "$driver" ] || driver=/usr/share/vulkan/icd.d/lvp_icd.x86_64.json
vulkan=$(ldconfig -p | sed -n 's/.*libvulkan\.so\.1 .*x86-64.* => //p' | head -n 1)
[ -e "$driver" ] || say 'There is no llvmpipe here. Install mesa-vulkan-drivers.'
[ -n "$vulkan" ] || say 'There is no Vulkan loader here. Install libvulkan1.'
[ -e /usr/lib/chromium/libvk_swiftshader.so ] || say "There is no Chromium of Debian's. Install chromium."

mkdir -p "$1/browser"
folder=$(cd "$1" && pwd)
cp -R /usr/lib/chromium/. "$folder/browser"
gcc -O1 -Wall -shared -fPIC "-DVULKAN=\"$vulkan\"" -o "$folder/browser/libvk_swiftshader.so" "$here/shim.c"
cat > "$folder/chromium" <<END
#!/bin/sh
# The sandbox of the GPU process keeps the driver from what it needs.
export VK_DRIVER_FILES=$driver VK_ICD_FILENAMES=$driver
exec $folder/browser/chromium --disable-gpu-sandbox "\$@"
END
chmod +x "$folder/chromium"
echo "$folder/chromium"
