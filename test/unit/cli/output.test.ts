/** No name, description or error takes control of the terminal. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { escapeControls, print, printOver } from '../../../src/cli/output.ts'
import { createProgress } from '../../../src/cli/progress.ts'
import { generateTypes } from '../../../src/cli/types.ts'
import { addIn, freshFolder, passing } from './graphs.ts'

/** A stream that keeps what is written to it. */
function kept(isTTY: boolean): { stream: NodeJS.WriteStream; text: () => string } {
  let text = ''
  const stream = {
    isTTY,
    write: (chunk: string) => (text += chunk),
  } as unknown as NodeJS.WriteStream
  return { stream, text: () => text }
}

const named = (first: number, last = first): string =>
  Array.from(
    { length: last - first + 1 },
    (_, index) => `\\u${(first + index).toString(16).padStart(4, '0')}`,
  ).join('')
const raw = (first: number, last = first): string =>
  String.fromCharCode(...Array.from({ length: last - first + 1 }, (_, index) => first + index))

test.each<[string, number, number]>([
  ['C0', 0, 0x1f],
  ['DEL and C1', 0x7f, 0x9f],
  ['the mark of Arabic', 0x61c, 0x61c],
  ['marks of direction', 0x200e, 0x200f],
  ['ends of lines and overrides', 0x2028, 0x202e],
  ['isolates', 0x2066, 0x2069],
])('escapes %s', (_, first, last) => {
  expect(escapeControls(raw(first, last))).toBe(named(first, last))
})

test('leaves every other sign', () => {
  const text = 'café 猫 🐈 שלום \\u001b ~ \u00a0'
  expect(escapeControls(text)).toBe(text)
})

test('a line stays a line', () => {
  const { stream, text } = kept(false)
  print(stream, ['one\nrun this: rm\r-rf', 'two'])
  expect(text()).toBe('one\\u000arun this: rm\\u000d-rf\ntwo\n')
})

test('progress in a terminal writes over one line and nothing else', () => {
  const { stream, text } = kept(true)
  const progress = createProgress(stream)
  progress.step('Reading \u001b]0;title\u0007.onnx')
  progress.end()
  expect(text()).toBe('\r\u001b[KReading \\u001b]0;title\\u0007.onnx ...\r\u001b[K')
  printOver(stream, '\n')
  expect(text().endsWith('\r\u001b[K\\u000a')).toBe(true)
})

test('types of a catalog carry no control characters in comments or names', async () => {
  const folder = freshFolder({
    'm.onnx': { ...passing({ name: 'x\u202e\u009b' }), description: 'Evil\u001b[2J\nsecond' },
  })
  await addIn(folder, 'm.onnx')
  const { text } = generateTypes([join(folder, 'public/inorigin/catalog.json')])
  expect(text).toContain("'x\\u202e\\u009b': ")
  expect(text).toContain('* Evil\\u001b[2J\n')
  expect(text).toContain('* second\n')
})
