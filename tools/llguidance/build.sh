#!/usr/bin/env bash
# Builds src/constraint/llguidance.wasm, and writes its digest and its licenses beside it. It takes four minutes the first
# time.
#
# It needs Node, `wasm-opt` of binaryen, and Rust. With rustup, `rustup target add wasm32-unknown-unknown` comes first. Without
# it, the packages of Debian do: rustc-web, cargo-web, rust-web-src and lld-19. Another version of a tool makes other bytes.
set -euo pipefail
cd "$(dirname "$0")"
target=wasm32-unknown-unknown
# A trap leaves the stack pointer where it was, so the caller resets it. A grammar cannot take more than 1 GiB.
flags="-C link-arg=--import-undefined -C link-arg=--export=__stack_pointer -C link-arg=--max-memory=$((1 << 30))"
flags="$flags -C target-feature=+simd128 --remap-path-prefix=$HOME=/home"
if command -v rustup >/dev/null && rustup target list --installed | grep -q "$target"; then
  RUSTFLAGS=$flags cargo build --locked --release --target "$target"
else
  # Debian has no standard library for this target, so it is built from its source.
  PATH=/usr/bin:$PATH RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-19 RUSTFLAGS=$flags \
    cargo build --locked --release -Zbuild-std=std,panic_abort --target "$target"
fi
folder=../../src/constraint
module=$folder/llguidance.wasm
wasm-opt -O3 --enable-simd --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int \
  --enable-reference-types --enable-multivalue --enable-mutable-globals \
  "target/$target/release/inorigin_llguidance.wasm" -o "$module"
chmod 644 "$module"
node licenses.mjs > "$folder/llguidance.licenses.md"
cat > "$folder/llguidance.json" <<END
{
  "file": "llguidance.wasm",
  "version": "$(sed -n 's/^llguidance = .*"=\([^"]*\)".*/\1/p' Cargo.toml)",
  "bytes": $(stat -c %s "$module"),
  "sha256": "$(sha256sum "$module" | cut -d ' ' -f 1)",
  "command": "tools/llguidance/build.sh",
  "tools": ["$(PATH=/usr/bin:$PATH rustc --version)", "$(wasm-opt --version)"]
}
END
cat "$folder/llguidance.json"
