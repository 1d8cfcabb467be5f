/** An answer of twice the length takes twice the work, counted in characters instead of time. */
import { expect, test } from 'vitest'
import { ReasoningSplitter } from '../../../src/generation/reasoning.ts'
import { FORMATS, type ToolFormat } from '../../../src/generation/tools/index.ts'
import { ToolParser } from '../../../src/generation/tools/parser.ts'
import { countReadCharacters } from '../../support/counted-work.ts'
import { runs } from '../../support/runs.ts'
import { SET, WEATHER } from './scripted.ts'

const SIZE = runs(10_000, 30_000)
const SIZES = [SIZE, 2 * SIZE] as const

/** Largest ratio of the work for these two sizes. */
const MAX_RATIO = 2.2

/** Length of a piece, about that of a token. */
const PIECE = 6

const TOOLS = [WEATHER, SET]

const call = (name: string, args: object) => ({ id: '', name, arguments: JSON.stringify(args) })

/** Answers of about this length: texts, calls with long arguments, and many calls. */
const ANSWERS: Readonly<Record<string, (format: ToolFormat, size: number) => string>> = {
  'a long text argument': (format, size) =>
    format.write([call('get_weather', { city: 'Some "words"\n<and> é \\ '.repeat(size / 24) })]),
  'white space in an argument': (format, size) =>
    format.write([call('get_weather', { city: `a${' \n'.repeat(size / 2)}b` })]),
  'a long list': (format, size) =>
    format.write([call('set', { names: Array.from({ length: size / 10 }, () => 'abcdef') })]),
  'a large object': (format, size) =>
    format.write([
      call('set', { extra: { a: Array.from({ length: size / 20 }, () => ({ b: 1.5 })) } }),
    ]),
  'many calls': (format, size) =>
    format.write(Array.from({ length: size / 50 }, () => call('get_weather', { city: 'Oslo' }))),
  'a call that never ends': (format, size) =>
    format.write([call('get_weather', { city: 'word '.repeat(size / 5) })]).slice(0, -20),
  'white space before a call': (format, size) =>
    ' \n'.repeat(size / 2) + format.write([call('get_weather', { city: 'Oslo' })]),
  'white space after a call': (format, size) =>
    format.write([call('get_weather', { city: 'Oslo' })]) + ' \n'.repeat(size / 2),
  'beginnings of calls': (format, size) =>
    `${(format.triggers[0] ?? '<').slice(0, -1)} `.repeat(size / (format.triggers[0]?.length ?? 1)),
  'marks without calls': (format, size) => {
    const mark = `${format.triggers[0] ?? '<'} no `
    return mark.repeat(size / mark.length)
  },
  'objects that are no calls': (format, size) => {
    const mark = `${format.triggers[0] ?? '<'}\n{"a": [1, {"b": "`
    return mark.repeat(size / mark.length)
  },
  'white space inside a call': (format, size) => {
    const trigger = format.triggers.at(-1) ?? '<'
    return trigger + ' \n'.repeat(size / 2)
  },
}

/** Splits a text into pieces. */
const cut = (text: string): string[] =>
  Array.from({ length: Math.ceil(text.length / PIECE) }, (_, at) =>
    text.slice(at * PIECE, at * PIECE + PIECE),
  )

/** Returns how many times more characters the second text costs than the first, per character. */
function ratioOf(read: (pieces: readonly string[]) => void, texts: readonly string[]): number {
  const [one = 0, two = 0] = texts.map((text) => {
    const pieces = cut(text)
    return countReadCharacters(() => read(pieces)) / text.length
  })
  return (2 * two) / one
}

test.each(
  FORMATS.flatMap((format) => Object.keys(ANSWERS).map((kind) => [format.name, kind] as const)),
)('%s: %s', (name, kind) => {
  const format = FORMATS.find((one) => one.name === name)!
  const ratio = ratioOf(
    (pieces) => {
      const parser = new ToolParser({ format, tools: TOOLS })
      for (const piece of pieces) parser.push(piece)
      parser.end(false)
    },
    SIZES.map((size) => ANSWERS[kind]!(format, size)),
  )
  expect(ratio).toBeLessThanOrEqual(MAX_RATIO)
})

const THINK = { open: '<think>', close: '</think>' }
const HARMONY = {
  begin: ['<|channel|>final<|message|>'] as [string],
  end: ['<|end|>'],
  next: '<|start|>assistant',
}

test.each<[string, (size: number) => string]>([
  ['text', (size) => `<think>${'Hm. '.repeat(size / 4)}</think>Yes`],
  ['white space in reasoning', (size) => `<think>a${' \n'.repeat(size / 2)}b</think>Yes`],
  ['white space at the start of reasoning', (size) => `<think>${' \n'.repeat(size / 2)}b`],
  ['white space before reasoning', (size) => `${' \n'.repeat(size / 2)}<think>a</think>Yes`],
  ['white space after reasoning', (size) => `<think>a</think>${' \n'.repeat(size / 2)}Yes`],
  ['white space at the end', (size) => `<think>a${' \n'.repeat(size / 2)}`],
  ['beginnings of marks', (size) => `<think>${'</think '.repeat(size / 8)}`],
  ['framed text', (size) => `${HARMONY.begin[0]}${'Yes <| '.repeat(size / 7)}<|end|>`],
  [
    'framed white space',
    (size) =>
      `${HARMONY.begin[0]}a<|end|>${' '.repeat(size)}<|start|>assistant${HARMONY.begin[0]}b`,
  ],
])('reasoning: %s', (_, write) => {
  const ratio = ratioOf((pieces) => {
    const splitter = new ReasoningSplitter(THINK, 'nothing', HARMONY)
    for (const piece of pieces) splitter.push(piece)
    splitter.end()
  }, SIZES.map(write))
  expect(ratio).toBeLessThanOrEqual(MAX_RATIO)
})
