/** No name, description or error takes control of the terminal. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createProgress, escapeControls, print, printOver } from '../../../src/cli/output.ts'
import { generateTypes } from '../../../src/cli/commands/types.ts'
import { addIn, freshFolder, passing } from './graphs.ts'

/** Creates a stream that keeps its text. */
function kept(isTTY: boolean): { stream: NodeJS.WriteStream; text: () => string } {
  let text = ''
  const write = (chunk: string) => (text += chunk)
  const stream = { isTTY, write } as unknown as NodeJS.WriteStream
  return { stream, text: () => text }
}

const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

test.each<[string, number, number]>([
  ['C0', 0, 0x1f],
  ['DEL and C1', 0x7f, 0x9f],
  ['Marks of Arabic', 0x61c, 0x61c],
  ['Marks of direction', 0x200e, 0x200f],
  ['Ends of lines and overrides', 0x2028, 0x202e],
  ['Isolates', 0x2066, 0x2069],
])('%s are escaped', (_, first, last) => {
  const codes = range(first, last)
  const escaped = codes.map((code) => `\\u${code.toString(16).padStart(4, '0')}`).join('')
  expect(escapeControls(String.fromCharCode(...codes))).toBe(escaped)
})

test('Other characters stay', () => {
  const text = 'café 猫 🐈 שלום \\u001b ~ \u00a0'
  expect(escapeControls(text)).toBe(text)
})

test('A line stays a line', () => {
  const { stream, text } = kept(false)
  print(stream, ['one\nrun this: rm\r-rf', 'two'])
  expect(text()).toBe('one\\u000arun this: rm\\u000d-rf\ntwo\n')
})

test('Progress in a terminal replaces one line', () => {
  const { stream, text } = kept(true)
  const progress = createProgress(stream)
  progress.step('Reading \u001b]0;title\u0007.onnx')
  progress.end()
  expect(text()).toBe('\r\u001b[KReading \\u001b]0;title\\u0007.onnx ...\r\u001b[K')
  printOver(stream, '\n')
  expect(text().endsWith('\r\u001b[K\\u000a')).toBe(true)
})

test('Types of a catalog have no control characters in comments or names', async () => {
  const graph = { ...passing({ name: 'x\u202e\u009b' }), description: 'Evil\u001b[2J\nsecond' }
  const folder = freshFolder({ 'm.onnx': graph })
  await addIn(folder, 'm.onnx')
  const { text } = generateTypes([join(folder, 'public/inorigin/catalog.json')])
  expect(text).toContain("'x\\u202e\\u009b': ")
  expect(text).toContain('* Evil\\u001b[2J\n')
  expect(text).toContain('* second\n')
})
