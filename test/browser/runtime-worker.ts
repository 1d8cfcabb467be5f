/** Runs one graph with onnxruntime-web, as the model worker does, and posts what came of it. */
addEventListener('message', (event: MessageEvent<{ runtime: string; model: string }>) => {
  answer(event.data.runtime, event.data.model).then(
    (outputs) => postMessage({ outputs }),
    (thrown: unknown) => postMessage({ error: String(thrown) }),
  )
})

async function answer(runtime: string, model: string): Promise<readonly string[]> {
  const ort = await import('onnxruntime-web/wasm')
  ort.env.wasm.wasmPaths = runtime
  ort.env.wasm.numThreads = 1
  const session = await ort.InferenceSession.create(model, { executionProviders: ['wasm'] })
  return session.outputNames
}
