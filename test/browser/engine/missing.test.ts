import { expect, test } from 'vitest'
import { loadRuntime } from '../../../src/engine/onnx/runtime.ts'
import { tinyFiles } from '../../models/tiny.ts'

// In a file, and so a page, of its own: a page loads the runtime only once.
test('says where the runtime was looked for', async () => {
  const folder = new URL('/nowhere/', location.href).href
  const runtime = await loadRuntime({ device: 'wasm', folder })
  const model = (await tinyFiles(['onnx/model.onnx'])).get('onnx/model.onnx') as Blob
  await expect(runtime.createSession(model)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'runtime_missing',
    message: expect.stringContaining(folder),
  })
})
