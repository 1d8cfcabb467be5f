/** What pages hand over that no test outside of a browser has. */
import { expect, onTestFinished, test } from 'vitest'
import { parseFiles } from '../../src/validate-arguments.ts'

test('files that were chosen in another frame are files', () => {
  const frame = document.createElement('iframe')
  document.body.append(frame)
  onTestFinished(() => frame.remove())
  const { File: Foreign } = frame.contentWindow as unknown as typeof globalThis
  const file = new Foreign(['x'], 'm.onnx')
  expect(file).not.toBeInstanceOf(File)
  expect(parseFiles([file])).toEqual([{ path: 'm.onnx', file }])
  expect(() => parseFiles([file, new Blob(['x']) as never])).toThrow('not Array')
})
