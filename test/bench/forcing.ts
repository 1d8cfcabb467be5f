/**
 * How many runs of the model an answer takes when its forced tokens need none of their own: answers of three schemas of
 * nested objects, by a decoder that wants to write a given JSON text and counts its runs.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Decoder, Sequence } from '../../src/engine/decoder.ts'
import { openDecoderEngine } from '../../src/engine/decoder-engine.ts'
import { createCpuLogits } from '../../src/engine/sampling/logits.ts'
import { serveStatic } from '../support/static.ts'
import { guideVocabulary } from '../support/vocabulary.ts'
import { atMost, type Figure } from './figure.ts'

const FOLDER = join(import.meta.dirname, '../../demo/models/guide')
const TEXTS = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']
const CONSTRAINT = join(import.meta.dirname, '../../src/constraint')

/** Largest share of the runs without forcing. */
const MAX_SHARE = 0.7

const text = { type: 'string', maxLength: 40 }
const object = (properties: Record<string, unknown>): Record<string, unknown> => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

/** Schemas, and the values that the decoder wants to write. */
const CASES: Readonly<Record<string, readonly [Record<string, unknown>, unknown]>> = {
  order: [
    object({
      customer: object({ firstName: text, lastName: text, emailAddress: text }),
      delivery: object({ street: text, postalCode: text, country: { enum: ['FI', 'SE', 'NO'] } }),
      express: { type: 'boolean' },
    }),
    {
      customer: { firstName: 'Ada', lastName: 'Lovelace', emailAddress: 'ada@example.org' },
      delivery: { street: 'Aleksanterinkatu 1', postalCode: '00100', country: 'FI' },
      express: true,
    },
  ],
  meeting: [
    object({
      organizer: object({ name: text, department: text }),
      participants: { type: 'array', items: object({ name: text, required: { type: 'boolean' } }) },
      startsAt: object({ hour: { type: 'integer' }, minute: { type: 'integer' } }),
    }),
    {
      organizer: { name: 'Grace', department: 'Research' },
      participants: [
        { name: 'Ada', required: true },
        { name: 'Alan', required: false },
      ],
      startsAt: { hour: 9, minute: 30 },
    },
  ],
  device: [
    object({
      settings: object({
        display: object({
          brightness: { type: 'integer' },
          colorScheme: { enum: ['light', 'dark'] },
        }),
        network: object({ hostname: text, useEncryption: { type: 'boolean' } }),
      }),
    }),
    {
      settings: {
        display: { brightness: 80, colorScheme: 'dark' },
        network: { hostname: 'printer', useEncryption: true },
      },
    },
  ],
}

/** Returns the JSON text of a value as answers have it: with a space after commas and colons. */
const toJson = (value: unknown): string =>
  JSON.stringify(value, null, 1)
    .replaceAll(/\n */g, ' ')
    .replaceAll(/(?<=[[{]) | (?=[\]}])/g, '')

/** A decoder that wants to write a text with the longest tokens, and counts its runs. */
class WritingDecoder implements Decoder {
  readonly maxChunkTokens = 4_096
  readonly maxBatchSize = 1
  runs = 0
  readonly #wanted: Buffer
  readonly #promptTokens: number
  readonly #vocabulary = guideVocabulary()

  constructor(wanted: string, promptTokens: number) {
    this.#wanted = Buffer.from(wanted)
    this.#promptTokens = promptTokens
  }

  open(): Sequence {
    return this.#open([])
  }

  async step(entries: readonly { sequence: Sequence; token: number }[]) {
    const [entry] = entries
    if (!entry) throw new Error('A step needs a sequence.')
    return entry.sequence.forward([entry.token])
  }

  synchronize = () => Promise.resolve()
  close = () => Promise.resolve()

  #open(tokens: number[]): Sequence {
    return {
      get length() {
        return tokens.length
      },
      bytes: 0,
      extend: async (more) => {
        this.runs += 1
        tokens.push(...more)
      },
      forward: async (more, rows = 1) => {
        this.runs += 1
        tokens.push(...more)
        const ends = Array.from({ length: rows }, (_, row) => tokens.length - rows + row + 1)
        return createCpuLogits(ends.map((end) => this.#logits(tokens.slice(0, end))))
      },
      reusableLength: (length) => length,
      checkpoint: () => undefined,
      truncate: async (length) => void tokens.splice(length),
      fork: async (length) => this.#open(tokens.slice(0, length)),
      close: () => undefined,
    }
  }

  #logits(tokens: readonly number[]): Float32Array {
    const { bytes, endTokens } = this.#vocabulary
    const written = tokens.slice(this.#promptTokens).flatMap((token) => [...(bytes[token] ?? [])])
    const rest = this.#wanted.subarray(written.length)
    const scores = new Float32Array(bytes.length)
    for (const [id, each] of bytes.entries()) {
      if (each && each.length > 0 && rest.subarray(0, each.length).equals(each))
        scores[id] = each.length
    }
    for (const id of endTokens) scores[id] = rest.length === 0 ? 1 : -1
    return scores
  }
}

/** Runs and tokens of an answer. Without forcing, each token takes a run. */
async function countRuns(
  constraints: string,
  schema: Record<string, unknown>,
  wanted: string,
  logprobs?: number,
) {
  const texts = new Map(TEXTS.map((name) => [name, new Blob([readFileSync(join(FOLDER, name))])]))
  const tokens = [1, 2, 3]
  const decoder = new WritingDecoder(wanted, tokens.length)
  const loaded = { decoder, verdict: null, reopen: async () => decoder, release: async () => {} }
  const setup = { device: 'wasm', runtime: '', constraints, texts, maxInputTokens: 2_048 } as const
  const engine = await openDecoderEngine(setup, { load: async () => loaded, drafts: false })
  const { signal } = new AbortController()
  await engine.load(new Map(), signal)
  const pieces = engine.generate(
    { tokens, boundaries: [], opening: '' },
    {
      maxTokens: 1_000,
      sampling: { temperature: 0 },
      signal,
      constraint: { type: 'json', schema },
      ...(logprobs !== undefined && { logprobs }),
    },
  )
  let written = ''
  for (;;) {
    const { value, done } = await pieces.next()
    if (done) {
      await engine.close()
      if (written !== wanted) throw new Error(`The answer is ${written}, and not ${wanted}.`)
      return { runs: decoder.runs, tokens: value.completionTokens }
    }
    written += value.text
  }
}

export async function measureForcing(): Promise<Figure[]> {
  const site = await serveStatic({ folders: { '/': CONSTRAINT }, pages: {} })
  const figures: Figure[] = []
  try {
    for (const [name, [schema, value]] of Object.entries(CASES)) {
      for (const logprobs of [undefined, 0]) {
        const { runs, tokens } = await countRuns(`${site.url}/`, schema, toJson(value), logprobs)
        const what = logprobs === undefined ? 'runs' : 'runs with logprobs'
        const note = `${runs} ${what} for an answer of ${tokens} tokens`
        const suffix = logprobs === undefined ? '' : '_logprobs'
        figures.push(atMost(`forcing_${name}${suffix}`, runs / tokens, MAX_SHARE, note))
      }
    }
    return figures
  } finally {
    await site.close()
  }
}
