import { describe, expect, test } from 'vitest'
import {
  findEmbedder,
  findTranscriber,
  findEntry,
  getOwner,
  isEmbedder,
  isListed,
  toModel,
  toPredictor,
} from '../../../src/catalog/find-entry.ts'
import type { Entry, PredictorEntry } from '../../../src/catalog/schema.ts'
import { assertTranscribes } from '../../../src/predictor/speech.ts'
import type { TranscriptionRequest } from '../../../src/types/index.ts'
import { catalog, HASH, model, predictor, thrownBy, validate } from './entries.ts'

test('An entry is found by its tag', () => {
  const all = catalog(model(), predictor())
  expect(findEntry(all, '@acme/digits', 'tag')).toBe(all.entries[1])
})

test('An unknown tag is refused with the most similar ones', () => {
  const tags = ['@acme/zebra', '@acme/guide', '@other/thing', '@acme/guild', '@b/c', '@d/e', '@f/g']
  const all = catalog(...tags.map((tag) => model({ tag })))
  const error = thrownBy(() => findEntry(all, '@acme/gude', 'model'))
  expect(error).toMatchObject({ kind: 'not_found', code: 'model_not_found', param: 'model' })
  expect(error.message).toContain('Unknown model "@acme/gude". Available: @acme/guide, @acme/guild')
  expect(error.message).toMatch(/ and 2 more\.$/)
})

test('An empty catalog is named as such', () => {
  const error = thrownBy(() => findEntry(catalog(), 'x'.repeat(1e6), 'model'))
  expect(error.message).toContain('catalog is empty')
})

test('A model is listed with its limits and capabilities', () => {
  const { type: _, implementations: __, ...listed } = model({ capabilities: { tools: true } })
  expect(toModel(model({ capabilities: { tools: true } }))).toEqual(listed)
  expect(toModel(model()).capabilities).toEqual({})
})

const said = {
  owner: { username: 'someone', created: '2020-01-01T00:00:00Z' },
  description: 'Reads digits.',
  card: '# Digits',
  status: 'archived',
  access: 'unlisted',
} as const

test('A predictor is listed with what its entry says, and with defaults', () => {
  const { signature } = predictor()
  expect(toPredictor(predictor())).toEqual({
    tag: '@acme/digits',
    owner: { username: 'acme', created: '2026-01-02T03:04:05Z' },
    name: 'Tiny',
    description: '',
    card: '',
    status: 'active',
    access: 'public',
    signature,
  })
  expect(toPredictor(predictor(said))).toMatchObject(said)
})

test('A state is an optional input', () => {
  const entry = predictor({ states: [{ input: 'image', output: 'digit' }] })
  expect(toPredictor(entry).signature.inputs).toMatchObject([{ name: 'image', optional: true }])
  expect(toPredictor(predictor()).signature.inputs[0]).not.toHaveProperty('optional')
})

test('The owner is part of a tag', () => {
  expect(getOwner('@acme/tiny')).toBe('acme')
})

const given = { input: 'text', output: 'vector', dimensions: 4, maxInputTokens: 512 }
const layout = { tokenizer: 'tokenizer.json', mask: 'mask', most: 512 }

function embedder(embeddings: object = {}, text: object | undefined = layout): PredictorEntry {
  const plain = predictor()
  return {
    ...plain,
    tag: '@acme/embed',
    signature: {
      inputs: ['text', 'style'].map((name) => ({ name, type: 'string' })),
      outputs: [{ name: 'vector', type: 'float32' } as const, { name: 'tokens', type: 'int32' }],
    },
    embeddings: { ...given, ...embeddings },
    implementations: plain.implementations.map((implementation) => ({
      ...implementation,
      bindings: { text: { tensor: 'ids', text } },
      resources: [
        ...implementation.resources,
        { type: 'tokenizer', url: 't.json', name: layout.tokenizer, bytes: 1, sha256: HASH },
      ],
    })) as PredictorEntry['implementations'],
  }
}

const check = (entry: PredictorEntry): Entry | undefined => validate(catalog(entry)).entries[0]

test('An embedder names its parameters', () => {
  expect(check(embedder())).toMatchObject({ embeddings: given })
  expect(() => check(embedder({ shortens: true, maxInputTokens: 8 }))).not.toThrow()
})

test.each<[object, object | undefined, string]>([
  [{ input: 'vector' }, layout, 'entries[0].embeddings.input: there is no input vector'],
  [{ output: 'text' }, layout, 'entries[0].embeddings.output: there is no output text'],
  [{ output: 'tokens' }, layout, 'entries[0].embeddings.output: tokens is int32, not floats'],
  [{ dimensions: 0 }, layout, 'entries[0].embeddings.dimensions: '],
  [{ model: 'x' }, layout, 'entries[0].embeddings.model: '],
  [{ maxInputTokens: 513 }, layout, 'maxInputTokens: is above the 512 tokens that wasm reads'],
  [{ input: 'style' }, layout, 'embeddings.input: wasm does not bind style with `text` and a mask'],
  [{}, { ...layout, mask: undefined }, 'wasm does not bind text with `text` and a mask'],
])('An embedder with %j and %j is refused', (embeddings, text, why) => {
  expect(thrownBy(() => check(embedder(embeddings, text))).message).toContain(why)
})

test('An embedder is listed as a model without output tokens', () => {
  const entry = embedder()
  expect(isEmbedder(entry) && toModel(entry)).toEqual({
    tag: '@acme/embed',
    name: 'Tiny',
    created: '2026-01-02T03:04:05Z',
    maxInputTokens: 512,
    maxOutputTokens: null,
    capabilities: { embeddings: { dimensions: 4 } },
  })
  expect([predictor(), model()].map(isEmbedder)).toEqual([false, false])
})

describe('An embedder', () => {
  const chat = model({ tag: '@acme/embedding' })
  const all = catalog(chat, embedder(), predictor())

  test('is found by its tag', () => {
    expect(findEmbedder(all, '@acme/embed')).toBe(all.entries[1])
    const chatting = thrownBy(() => findEntry(all, '@acme/embeds', 'model'))
    expect(chatting.message).toBe('Unknown model "@acme/embeds". Available: @acme/embedding.')
  })

  const unknown = { kind: 'not_found', code: 'model_not_found', param: 'model' }
  const none = expect.stringMatching(/^No model of this catalog embeds texts\. /)
  test.each<[string, object, unknown, typeof all?]>([
    ['@acme/embeds', unknown, 'Unknown model "@acme/embeds". Available: @acme/embed.'],
    [
      chat.tag,
      { kind: 'invalid_request', code: 'unsupported_model', param: 'model' },
      '@acme/embedding generates text and does not embed texts; @acme/embed does.',
    ],
    [
      '@acme/digits',
      { kind: 'not_found' },
      '@acme/digits is a predictor that does not embed texts; @acme/embed does.',
    ],
    ['@acme/embed', unknown, none, catalog(chat, predictor())],
  ])('is named when %s embeds no texts', (tag, error, message, where = all) => {
    expect(thrownBy(() => findEmbedder(where, tag))).toMatchObject({ ...error, message })
  })
})

describe('A model of speech', () => {
  const chat = model()
  const plain = predictor()
  const speech = { noTimestamps: 80, positions: 448, tasks: { transcribe: 8, translate: 9 } }
  const hearing: PredictorEntry = {
    ...plain,
    tag: '@acme/hear',
    implementations: plain.implementations.map((implementation) => ({
      ...implementation,
      decoder: {
        output: 'text',
        encoder: 'encoder.onnx',
        graph: 'decoder.onnx',
        tokenizer: 'tokenizer.json',
        start: [5],
        end: [70],
        speech,
      },
    })),
  }
  const all = catalog(chat, hearing, plain)

  test('is listed with the length of its prompt', () => {
    expect(toModel(hearing)).toMatchObject({
      maxInputTokens: 223,
      maxOutputTokens: null,
      capabilities: { transcription: { translates: true } },
    })
    expect([chat, hearing, plain].map(isListed)).toEqual([true, true, false])
  })

  test.each<[string, string, object, string, typeof all?]>([
    [
      'chats',
      chat.tag,
      { code: 'unsupported_model' },
      'generates text and does not write down speech',
    ],
    [
      'predicts',
      plain.tag,
      { kind: 'not_found' },
      'is a predictor that does not write down speech',
    ],
    ['is unknown', '@acme/heat', { kind: 'not_found' }, 'Available: @acme/hear.'],
    [
      'is in a catalog without one',
      plain.tag,
      { kind: 'not_found' },
      'No model of this catalog writes down speech.',
      catalog(chat, plain),
    ],
  ])('is named when one that %s is asked', (_what, tag, error, message, where = all) => {
    const thrown = thrownBy(() => findTranscriber(where, tag))
    expect(thrown).toMatchObject({ ...error, param: 'model' })
    expect(thrown.message).toContain(message)
  })

  test('is found by its tag', () => {
    expect(findTranscriber(all, '@acme/hear')).toBe(hearing)
  })

  const request = { model: hearing.tag, file: new Blob(), isStreamed: false, hasSegments: false }
  const refusal = (entry: PredictorEntry, fields: Partial<TranscriptionRequest>) =>
    thrownBy(() => assertTranscribes(entry, { ...request, task: 'transcribe', ...fields }))

  test('refuses what its files do not have', () => {
    expect(refusal(hearing, { hasWords: true })).toMatchObject({
      kind: 'invalid_request',
      param: 'timestamp_granularities',
      message: expect.stringContaining('`cross_attentions.N`'),
    })
    expect(refusal(hearing, { language: 'de' })).toMatchObject({ param: 'language' })
    const [implementation] = hearing.implementations
    const { tasks: _, ...english } = speech
    const monolingual = {
      ...hearing,
      implementations: [
        { ...implementation, decoder: { ...implementation?.decoder, speech: english } },
      ],
    } as PredictorEntry
    expect(refusal(monolingual, { task: 'translate' })).toMatchObject({
      param: 'model',
      message: expect.stringContaining('does not translate'),
    })
  })
})
