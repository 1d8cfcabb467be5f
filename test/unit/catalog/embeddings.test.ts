/** Predictors that say they embed texts. */
import { describe, expect, test } from 'vitest'
import { findEmbedder, findEntry, isEmbedder, toModel } from '../../../src/catalog/find-entry.ts'
import type { Entry, PredictorEntry } from '../../../src/catalog/schema.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'
import { catalog, model, predictor, thrownBy } from './entries.ts'

const given: NonNullable<PredictorEntry['embeddings']> = {
  input: 'text',
  output: 'vector',
  dimensions: 4,
  maxInputTokens: 512,
}

const layout = { tokenizer: 'tokenizer.json', mask: 'mask', most: 512 }

function embedder(embeddings: object = {}, text: object | undefined = layout): PredictorEntry {
  const plain = predictor()
  return {
    ...plain,
    tag: '@acme/embed',
    signature: {
      inputs: [
        { name: 'text', type: 'string' },
        { name: 'style', type: 'string' },
      ],
      outputs: [
        { name: 'vector', type: 'float32' },
        { name: 'tokens', type: 'int32' },
      ],
    },
    embeddings: { ...given, ...embeddings },
    implementations: plain.implementations.map((implementation) => ({
      ...implementation,
      bindings: { text: { tensor: 'ids', text } },
      resources: [
        ...implementation.resources,
        {
          type: 'tokenizer',
          url: 't.json',
          name: layout.tokenizer,
          bytes: 1,
          sha256: 'b'.repeat(64),
        },
      ],
    })) as PredictorEntry['implementations'],
  }
}

function check(entry: PredictorEntry): Entry | undefined {
  const options = { source: 'test', base: 'https://acme.example/', embedded: false }
  return validateCatalog(catalog(entry), options).entries[0]
}

test('they name their parameters', () => {
  expect(check(embedder())).toMatchObject({ embeddings: given })
  expect(() => check(embedder({ shortens: true, maxInputTokens: 8 }))).not.toThrow()
})

test.each<[object, object | undefined, string]>([
  [{ input: 'vector' }, layout, 'entries[0].embeddings.input: there is no input vector'],
  [{ output: 'text' }, layout, 'entries[0].embeddings.output: there is no output text'],
  [{ output: 'tokens' }, layout, 'entries[0].embeddings.output: tokens is int32, not floats'],
  [{ dimensions: 0 }, layout, 'entries[0].embeddings.dimensions: '],
  [{ model: 'x' }, layout, 'entries[0].embeddings.model: '],
  [
    { maxInputTokens: 513 },
    layout,
    'embeddings.maxInputTokens: is above the 512 tokens that wasm reads',
  ],
  [{ input: 'style' }, layout, 'embeddings.input: wasm does not bind style with `text` and a mask'],
  [{}, { ...layout, mask: undefined }, 'wasm does not bind text with `text` and a mask'],
])('%j with %j is no use', (embeddings, text, why) => {
  expect(thrownBy(() => check(embedder(embeddings, text))).message).toContain(why)
})

test('they are listed as models that write nothing', () => {
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

describe('who asks for one', () => {
  const chat = model({ tag: '@acme/embedding' })
  const all = catalog(chat, embedder(), predictor())
  const asking = (tag: string, where = all) => thrownBy(() => findEmbedder(where, tag))

  test('gets it', () => {
    expect(findEmbedder(all, '@acme/embed')).toBe(all.entries[1])
  })

  test('is told what looks like an unknown one, and does embed', () => {
    const error = asking('@acme/embeds')
    expect(error).toMatchObject({ kind: 'not_found', code: 'model_not_found', param: 'model' })
    expect(error.message).toBe('Unknown model "@acme/embeds". Available: @acme/embed.')
    const chatting = thrownBy(() => findEntry(all, '@acme/embeds', 'model'))
    expect(chatting.message).toBe('Unknown model "@acme/embeds". Available: @acme/embedding.')
  })

  test('is told of another model what it does', () => {
    expect(asking(chat.tag)).toMatchObject({
      kind: 'invalid_request',
      code: 'unsupported_model',
      param: 'model',
      message: '@acme/embedding generates text and does not embed texts; @acme/embed does.',
    })
    expect(asking('@acme/digits')).toMatchObject({
      kind: 'not_found',
      message: '@acme/digits is a predictor that does not embed texts; @acme/embed does.',
    })
  })

  test('is told where none does', () => {
    expect(asking('@acme/embed', catalog(chat, predictor()))).toMatchObject({
      kind: 'not_found',
      code: 'model_not_found',
      param: 'model',
      message: expect.stringMatching(/^No model of this catalog embeds texts\. /),
    })
  })
})
