/** Folders of tasks from `inorigin add` to answers of their endpoints, in a browser. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { encodePng } from '../../src/predictor/png.ts'
import type { Server } from '../../src/index.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { CliApp, ROOT } from '../support/cli-app.ts'
import { ENCODER, float, toFloats, TOKENS } from '../support/encoder.ts'
import { decoderGraph, sumText, tokensOf } from '../support/encoder-decoder.ts'
import { type Graph, onnxFile } from '../support/onnx.ts'
import { fetchIn } from '../support/requests.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/inorigin/catalog.json', device: 'wasm' })
</script>`

/** One score for each pair: the sum of the ids, scaled. */
const SCORER: Graph = {
  inputs: TOKENS,
  outputs: [{ name: 'logits', type: 'float32', shape: ['batch', 1] }],
  nodes: [
    { type: 'Mul', inputs: TOKENS.map(({ name }) => name), outputs: ['kept'] },
    toFloats('kept'),
    { type: 'ReduceSum', inputs: ['kept.float', 'last'], outputs: ['sum'] },
    { type: 'Mul', inputs: ['sum', 'scale'], outputs: ['logits'] },
  ],
  weights: [
    { name: 'last', type: 'int64', shape: [1], data: { integers: [1] } },
    float('scale', 0.0001),
  ],
}

/** Scores of three classes: the colors of each pixel. */
const PAINTER: Graph = {
  inputs: [
    { name: 'pixel_values', type: 'float32', shape: ['batch', 'num_channels', 'height', 'width'] },
  ],
  outputs: [{ name: 'logits', type: 'float32', shape: ['batch', 3, 'height', 'width'] }],
  nodes: [{ type: 'Identity', inputs: ['pixel_values'], outputs: ['logits'] }],
}

const PROCESSOR = {
  image_processor_type: 'SegformerImageProcessor',
  size: { width: 2, height: 2 },
  resample: 4,
}

const GUIDE = join(ROOT, 'demo/models/guide')
const TOKENIZER = readFileSync(join(GUIDE, 'tokenizer.json'), 'utf8')
const tokenizer = new Tokenizer(JSON.parse(TOKENIZER) as object, {})
const idsOf = (text: string, pair: string | null = null): number[] =>
  tokenizer.encode(text, { text_pair: pair }).ids

const MOST_TOKENS = 16

interface InPage {
  server: {
    predict(
      tag: string,
      inputs: object,
    ): Promise<{ outputs: { segments: { label: string; index: number; mask: ImageData }[] } }>
  }
}

let app: CliApp
let site: StaticServer
let browser: Browser
let page: Page

beforeAll(async () => {
  app = new CliApp()
  app.init('--no-guide')
  put('encoder', 'BertModel', ENCODER)
  put('reranker', 'BertForSequenceClassification', SCORER)
  app.put('painter/preprocessor_config.json', JSON.stringify(PROCESSOR))
  put('painter', 'SegformerForSemanticSegmentation', PAINTER, ['red', 'green', 'blue'])
  const [first, next] = ['first', 'next'] as const
  putWriter('merged', { decoder_model_merged: 'merged' })
  putWriter('whole', { decoder_model: first })
  putWriter('divided', { decoder_model: first, decoder_with_past_model: next }, 'onnx/')
  site = await serveStatic({ folders: { '/': app.path('public') }, pages: { '/app.html': PAGE } })
  browser = await openBrowser()
  page = makePatient(await browser.newPage())
  await page.goto(`${site.url}/app.html`)
  await page.waitForFunction(() => 'server' in globalThis)
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  app?.remove()
})

/** Writes a folder as Optimum does, and adds it. */
function put(name: string, architecture: string, graph: Graph, names = ['LABEL_0']): void {
  const config = { architectures: [architecture], max_position_embeddings: MOST_TOKENS }
  app.put(`${name}/config.json`, JSON.stringify({ ...config, id2label: { ...names } }))
  app.put(`${name}/tokenizer.json`, TOKENIZER)
  app.put(`${name}/model.onnx`, onnxFile(graph))
  expect(app.inorigin('add', name, '--tag', `@me/${name}`)).toMatchObject({ code: 0, err: '' })
}

const START = 5
const LIMITS = { start: [START], end: 3, count: 9 }

/** Writes a folder of an encoder-decoder, and adds it. `inside` is the folder of its graphs. */
function putWriter(
  name: string,
  decoders: Readonly<Record<string, Parameters<typeof decoderGraph>[0]>>,
  inside = '',
): void {
  const architectures = ['T5ForConditionalGeneration']
  const summary = { prefix: 'sum up: ', max_length: 5 }
  const config = { architectures, model_type: 't5', is_encoder_decoder: true }
  const tasks = { task_specific_params: { summarization: summary } }
  app.put(`${name}/config.json`, JSON.stringify({ ...config, ...tasks }))
  const generation = { decoder_start_token_id: START, eos_token_id: LIMITS.end }
  app.put(
    `${name}/generation_config.json`,
    JSON.stringify({ ...generation, max_length: LIMITS.count + 1 }),
  )
  app.put(`${name}/tokenizer.json`, TOKENIZER)
  app.put(`${name}/${inside}encoder_model.onnx`, onnxFile(ENCODER))
  for (const [graph, kind] of Object.entries(decoders))
    app.put(`${name}/${inside}${graph}.onnx`, onnxFile(decoderGraph(kind)))
  expect(app.inorigin('add', name, '--tag', `@me/${name}`)).toMatchObject({ code: 0, err: '' })
}

const predictIn = (where: Page, tag: string, inputs: object): Promise<Record<string, unknown>> =>
  where.evaluate(
    async ([name, given]) => {
      const { server } = globalThis as unknown as { server: Server }
      return (await server.predict(name, { ...given })).outputs
    },
    [tag, inputs] as const,
  )

const post = async (path: string, body: object) =>
  JSON.parse((await fetchIn(page, path, body)).text)

test(
  'An encoder answers at /v1/embeddings: the mean without padding, of the tokens that fit',
  { tags: ['everyday'] },
  async () => {
    const input = ['Lists.', 'How is a list sorted, and what does it return?', 'word '.repeat(200)]
    const answer = await post('/v1/embeddings', { model: '@me/encoder', input })
    expect(answer.error?.message).toBeUndefined()
    const { data } = answer
    const expected = input.map((text) => {
      const ids = idsOf(text).slice(0, MOST_TOKENS)
      const mean = ids.reduce((sum, id) => sum + id, 0) / ids.length
      return [mean, 100].map((one) => expect.closeTo(one / Math.hypot(mean, 100), 4))
    })
    expect(data.map(({ embedding }: { embedding: number[] }) => embedding)).toEqual(expected)

    const whole = { model: '@me/encoder', input, truncate: false }
    expect((await post('/v1/embeddings', whole)).error).toMatchObject({
      code: 'context_length_exceeded',
      param: 'input[2]',
    })
  },
)

test(
  'A classifier with one class answers at /v1/rerank, the best document first',
  { tags: ['everyday'] },
  async () => {
    const query = 'a list'
    const documents = ['is', 'how to sort it again', 'a tuple']
    const { results } = await post('/v1/rerank', { model: '@me/reranker', query, documents })
    const scores = documents.map((text, index) => {
      const sum = idsOf(query, text).reduce((all, id) => all + id, 0)
      return { index, relevance_score: 1 / (1 + Math.exp(-sum / 10_000)) }
    })
    const sorted = scores.toSorted((one, other) => other.relevance_score - one.relevance_score)
    expect(results).toEqual(
      sorted.map(({ index, relevance_score }) => ({
        index,
        relevance_score: expect.closeTo(relevance_score, 4),
      })),
    )
    const listed = await fetchIn(page, '/v1/models/@me/reranker')
    expect(JSON.parse(listed.text)).toMatchObject({ capabilities: { rerank: { supported: true } } })
  },
)

test(
  'A segmenter returns masks of the size of the picture, over HTTP as PNG files in a list',
  { tags: ['everyday'] },
  async () => {
    const [width, height] = [6, 4]
    const data = new Uint8ClampedArray(width * height * 4)
    for (let pixel = 0; pixel < width * height; pixel++)
      data.set(pixel % width < 3 ? [200, 0, 0, 255] : [0, 0, 200, 255], pixel * 4)
    const file = Buffer.from(await encodePng({ data, width, height })).toString('base64')
    const url = `data:image/png;base64,${file}`
    const left = Array.from({ length: width * height }, (_, pixel) => (pixel % width < 3 ? 255 : 0))
    const read = (source: string) =>
      page.evaluate(async (from) => {
        const bitmap = await createImageBitmap(await (await fetch(from)).blob())
        const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
        context?.drawImage(bitmap, 0, 0)
        const { data: pixels } = context?.getImageData(0, 0, bitmap.width, bitmap.height) ?? {}
        return Array.from(pixels ?? []).filter((_, at) => at % 4 === 0)
      }, source)

    const parts = await page.evaluate(async (source) => {
      const pixels = await (await fetch(source)).blob()
      const { outputs } = await (globalThis as unknown as InPage).server.predict('@me/painter', {
        pixel_values: pixels,
      })
      return outputs.segments.map(({ mask, ...others }) => ({
        ...others,
        mask: [...mask.data].filter((_, at) => at % 4 === 0),
      }))
    }, url)
    const right = left.map((white) => 255 - white)
    expect(parts).toEqual([
      { label: 'red', index: 0, mask: left },
      { label: 'blue', index: 2, mask: right },
    ])

    const inputs = { pixel_values: { data: url, dtype: 'image' } }
    const body = { tag: '@me/painter', clientId: 'test', inputs }
    const { results, error } = await post('/v1/predictions/remote', body)
    expect(error?.message).toBeUndefined()
    const listed = JSON.parse(await (await fetch(results[0].data)).text())
    expect(listed.map(({ label }: { label: string }) => label)).toEqual(['red', 'blue'])
    expect(await read(listed[0].mask)).toEqual(left)
  },
)

test.each(['merged', 'divided', 'whole'])(
  'An encoder-decoder writes a text, from its caches if it has any: %s',
  { tags: ['everyday'] },
  async (name) => {
    const predict = (inputs: object) => predictIn(page, `@me/${name}`, inputs)
    const written = (text: string, limits = LIMITS): string => {
      const tokens = tokensOf(sumText(idsOf(text)), limits)
      return tokenizer.decode(tokens, { clean_up_tokenization_spaces: false })
    }
    const texts = ['Lists.', 'How is a list sorted?']
    expect(await predict({ text: texts[0] })).toEqual({ text: written('Lists.') })
    const { text } = (await predict({ text: texts })) as { text: { data: string[] } }
    expect(text.data).toEqual(texts.map((one) => written(one)))
    expect(await predict({ text: 'Lists.', task: 'summarization' })).toEqual({
      text: written('sum up: Lists.', { ...LIMITS, count: 4 }),
    })
    expect(await predict({ text: 'Lists.', max_new_tokens: 2 })).toEqual({
      text: written('Lists.', { ...LIMITS, count: 2 }),
    })
  },
)

test(
  'A text is reported as it is written, by the host and by the worker',
  { tags: ['everyday'] },
  async () => {
    const predict = (text: string | string[]) =>
      page.evaluate(async (given) => {
        const { server } = globalThis as unknown as { server: Server }
        // The first prediction goes to the host, and most others directly to the worker.
        await server.models.unload('@me/merged')
        const reports: string[][] = []
        let whole: unknown
        for (let run = 0; run < 5; run += 1) {
          const own: string[] = []
          const onText = (part: string): void => void own.push(part)
          whole = (await server.predict('@me/merged', { text: given }, { onText })).outputs['text']
          reports.push(own)
        }
        return { reports, whole }
      }, text)
    const { reports, whole } = await predict('How is a list sorted?')
    for (const parts of reports) {
      expect(parts.length).toBeGreaterThan(0)
      for (const part of parts) expect(String(whole).startsWith(part)).toBe(true)
    }
    // Nobody could tell whose text it is.
    expect((await predict(['Lists.', 'How?'])).reports.flat()).toEqual([])
  },
)
