#!/usr/bin/env bash
# Builds src/engine/onnx/matrices-wasm.ts. It needs `wasm-opt` of binaryen, and Rust with `rustup target add
# wasm32-unknown-unknown`. Another version of a tool makes other bytes.
set -euo pipefail
cd "$(dirname "$0")"
target=wasm32-unknown-unknown
RUSTFLAGS="-C target-feature=+simd128 -C link-arg=--export=__heap_base" \
  cargo build --locked --release --target "$target"
module=$(mktemp)
wasm-opt -O3 --enable-simd --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int \
  --enable-mutable-globals "target/$target/release/inorigin_weights.wasm" -o "$module"
cat > ../../src/engine/onnx/matrices-wasm.ts <<END
/**
 * A WebAssembly module in base64, of $(stat -c %s "$module") bytes, made by tools/weights/build.sh with $(rustc --version | cut -d ' ' -f 1-2)
 * and $(wasm-opt --version).
 */
export const MATRICES_WASM =
  '$(base64 -w 0 "$module")'
END
rm "$module"
