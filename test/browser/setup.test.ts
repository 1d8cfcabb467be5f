import { expect, test } from 'vitest'

test('serves the runtime and the embedded models', async () => {
  const wasm = await fetch('/node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.wasm')
  expect(wasm.status).toBe(200)
  expect(wasm.headers.get('content-type')).toBe('application/wasm')
  const config = await fetch('/demo/models/guide/config.json')
  expect(await config.json()).toHaveProperty('model_type')
})

test('opens a model with onnxruntime-web in a module worker', async () => {
  const worker = new Worker(new URL('./runtime-worker.ts', import.meta.url), { type: 'module' })
  const reply = new Promise((resolve, reject) => {
    worker.addEventListener('message', (event) => resolve(event.data))
    worker.addEventListener('error', (event) => reject(new Error(event.message)))
  })
  worker.postMessage({
    runtime: new URL('/node_modules/onnxruntime-web/dist/', location.href).href,
    model: new URL('/demo/models/guide/onnx/model.onnx', location.href).href,
  })
  expect(await reply).toHaveProperty('outputs', expect.arrayContaining(['logits']))
  worker.terminate()
})

test('has a WebGPU adapter', async () => {
  expect(await navigator.gpu.requestAdapter()).not.toBeNull()
})
