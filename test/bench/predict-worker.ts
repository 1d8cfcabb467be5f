/** A bare session: what `predict()` is compared with. */
import * as ort from 'onnxruntime-web/wasm'

let session: ort.InferenceSession | undefined
let picture: ort.Tensor | undefined

self.onmessage = async ({ data }: MessageEvent<'open' | 'run'>) => {
  self.postMessage(data === 'open' ? await open() : await run())
}

async function open(): Promise<void> {
  ort.env.wasm.wasmPaths = `${location.origin}/inorigin/ort/`
  ort.env.wasm.numThreads = 1
  session = await ort.InferenceSession.create('/values/slow.onnx', { executionProviders: ['wasm'] })
  picture = new ort.Tensor('float32', new Float32Array(3 * 224 * 224).fill(0.5), [1, 3, 224, 224])
}

/** Milliseconds of one run. */
async function run(): Promise<number> {
  if (!session || !picture) throw new Error('The session is not open.')
  const start = performance.now()
  const { means } = await session.run({ picture })
  const milliseconds = performance.now() - start
  means?.dispose()
  return milliseconds
}
