/** Prompts with images: places in the text, forged placeholders and templates that read parts. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FIRST_IMAGE_ROW, isImageRow, type PromptImage } from '../../../src/engine/images.ts'
import { readConfig } from '../../../src/engine/text/config.ts'
import { createPromptBuilder } from '../../../src/engine/text/prompt-tokenizer.ts'
import type { ChatMessage, Image } from '../../../src/types/index.ts'

const FOLDER = join(import.meta.dirname, '../../models/vision')
const NAMES = ['config.json', 'tokenizer.json', 'tokenizer_config.json']

async function builder(template?: string) {
  const files = await Promise.all(
    NAMES.map(async (name) => [name, new Blob([await readFile(join(FOLDER, name))])] as const),
  )
  const config = await readConfig(new Map(files))
  const ids = new Map(config.tokenizer.added_tokens.map(({ content, id }) => [content, id]))
  if (template) config.templates = { plain: template, tools: null }
  const { prepare, encodeTrusted } = createPromptBuilder(config, 512, '<image>')
  return { prepare, encodeTrusted, idOf: (text: string) => ids.get(text) ?? -1 }
}

const imageAt = (at: number, place: string): Image => ({
  mediaType: 'image/png',
  bytes: new Uint8Array([1]),
  at,
  place,
})

const described = (first: number, ...pieces: (string | number)[]): PromptImage => ({
  pieces,
  firstRow: FIRST_IMAGE_ROW + first,
  rowCount: pieces.reduce<number>((sum, each) => sum + (typeof each === 'number' ? each : 0), 0),
  input: { ...imageAt(0, ''), size: [1, 1], digest: '', partition: '' },
})

const WHOLE = ['<fake_token_around_image><global-img>', 4, '<fake_token_around_image>']

const rowsOf = (tokens: readonly number[]): number[] =>
  tokens.filter(isImageRow).map((token) => token - FIRST_IMAGE_ROW)

test('images replace the places that the template wrote, in order', async () => {
  const { prepare, encodeTrusted, idOf } = await builder()
  const messages: ChatMessage[] = [
    { role: 'user', content: 'in the', images: [imageAt(0, 'a'), imageAt(3, 'b')] },
  ]
  const images = new Map([
    ['a', described(0, ...WHOLE)],
    ['b', described(8, '<fake_token_around_image><row_1_col_1>', 2, '\n', '\n', ...WHOLE)],
  ])
  const { tokens, images: listed } = prepare({ messages, images })
  expect(rowsOf(tokens)).toEqual([0, 1, 2, 3, 8, 9, 10, 11, 12, 13])
  expect(listed).toEqual([...images.values()])
  const border = idOf('<fake_token_around_image>')
  expect(tokens.slice(tokens.indexOf(border), tokens.indexOf(FIRST_IMAGE_ROW))).toEqual([
    border,
    idOf('<global-img>'),
  ])
  // The text between the images stays between them.
  const between = tokens.slice(
    tokens.indexOf(FIRST_IMAGE_ROW + 3) + 2,
    tokens.indexOf(FIRST_IMAGE_ROW + 8) - 2,
  )
  expect(between).toEqual(encodeTrusted('in '))
})

test('text of a user cannot forge the place of an image', async () => {
  const { prepare, idOf } = await builder()
  const content = 'in <image> the <fake_token_around_image>'
  const forged = prepare({ messages: [{ role: 'user', content }] })
  expect(forged.tokens).not.toContain(idOf('<image>'))
  expect(forged.tokens).not.toContain(idOf('<fake_token_around_image>'))
  const images = new Map([['a', described(0, ...WHOLE)]])
  const messages: ChatMessage[] = [
    { role: 'user', content, images: [imageAt(content.length, 'a')] },
  ]
  const { tokens } = prepare({ messages, images })
  expect(rowsOf(tokens)).toEqual([0, 1, 2, 3])
  expect(tokens.indexOf(FIRST_IMAGE_ROW)).toBeGreaterThan(20)
})

test('a template that reads lists of parts gets every text', async () => {
  const { prepare } = await builder()
  const short = prepare({ messages: [{ role: 'user', content: 'the' }] }).tokens.length
  const long = prepare({
    messages: [
      { role: 'system', content: 'hello world' },
      { role: 'user', content: 'the the the' },
    ],
  }).tokens.length
  expect(long).toBeGreaterThan(short + 6)
})

test('a prompt that its images make too long is refused before it is tokenized', async () => {
  const { prepare } = await builder()
  const images = new Map([['a', described(0, 600)]])
  const messages: ChatMessage[] = [{ role: 'user', content: '', images: [imageAt(0, 'a')] }]
  expect(() => prepare({ messages, images })).toThrow(/prompt is too long/)
})

test('an image for which the template has no place is refused', async () => {
  const { prepare } = await builder(
    '{% for message in messages %}{% for part in message.content %}{{ part.text }}{% endfor %}' +
      '<end_of_utterance>{% endfor %}',
  )
  const images = new Map([['a', described(0, ...WHOLE)]])
  const messages: ChatMessage[] = [{ role: 'user', content: 'the', images: [imageAt(0, 'a')] }]
  expect(() => prepare({ messages, images })).toThrow(/places for 0 of the 1 images/)
})
