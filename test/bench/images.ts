/** Questions about images: the first token of a second one beside the first, and memory. */
import { join } from 'node:path'
import type { Page } from 'playwright'
import { openHub, repositoryOf } from '../support/hub.ts'
import { openSite, serveIn } from '../support/site.ts'
import { MODELS } from './compare.ts'
import { atMost, type Figure, median, printTable, reported } from './figure.ts'
import { measureImageMemory } from './image-memory.ts'
import { writeSeer } from './models/seer.ts'
import { characterOf } from './models/tokenizer.ts'

/** Images, about each of which there are two questions. The first image warms everything up. */
const ROUNDS = 6
/** Tokens of a question. */
const QUESTION = 12
const TAG = '@bench/seer'

interface Round {
  /** Milliseconds to the first token of each question. */
  first: number
  second: number
  /** Tokens of the second prompt that were found again. */
  cached: number
}

/** Measures on WASM, through `fetch`. */
export async function measureImages(): Promise<Figure[]> {
  const folder = join(MODELS, 'seer')
  writeSeer(folder)
  const hub = await openHub({ 'bench/seer': repositoryOf(folder, 'e'.repeat(40)) })
  const drawing = '<!doctype html><meta charset="utf-8"><title>drawing</title>'
  const site = await openSite({ ownBrowser: true, pages: { '/drawing.html': drawing } })
  try {
    const page = await site.open()
    const capabilities = { imageInput: true }
    const entry = { tag: TAG, huggingface: 'bench/seer', host: hub.url, capabilities }
    await serveIn(page, { device: 'wasm', catalog: { version: 1, entries: [entry] } })
    const rounds: Round[] = []
    for (let round = 0; round <= ROUNDS; round += 1) {
      const asked = await askTwice(page, round)
      if (round > 0) rounds.push(asked)
    }
    return [...toFigures(rounds), ...(await measureImageMemory(site, page, TAG))]
  } finally {
    await site.close()
    await hub.close()
  }
}

const questionOf = (seed: number): string =>
  Array.from({ length: QUESTION }, (_, index) => characterOf(seed * QUESTION + index)).join('')

/** Draws an image of noise, and asks two questions about it. */
function askTwice(page: Page, round: number): Promise<Round> {
  return page.evaluate(
    async ({ model, questions, hue }) => {
      const canvas = new OffscreenCanvas(1_024, 768)
      const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
      for (let at = 0; at < 400; at += 1) {
        context.fillStyle = `hsl(${(hue * 50 + at * 7) % 360} 80% 50%)`
        context.fillRect((at * 37) % 1_024, (at * 53) % 768, 80, 60)
      }
      const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer())
      const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
      const ask = async (text: string): Promise<{ time: number; cached: number }> => {
        const start = performance.now()
        const response = await fetch('/v1/chat/completions', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            model,
            stream: true,
            stream_options: { include_usage: true },
            temperature: 0,
            max_tokens: 4,
            messages: [
              {
                role: 'user',
                content: [
                  { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
                  { type: 'text', text },
                ],
              },
            ],
          }),
        })
        let [sent, time] = ['', 0]
        const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          sent += value
          if (time === 0 && /"content":"[^"]/.test(sent)) time = performance.now() - start
        }
        if (time === 0) throw new Error(`There is no token: ${sent}`)
        return { time, cached: Number(/"cached_tokens":(\d+)/.exec(sent)?.[1]) }
      }
      const first = await ask(questions[0] as string)
      const second = await ask(questions[1] as string)
      return { first: first.time, second: second.time, cached: second.cached }
    },
    { model: TAG, questions: [questionOf(2 * round), questionOf(2 * round + 1)], hue: round },
  )
}

function toFigures(rounds: readonly Round[]): Figure[] {
  printTable([
    ['images', 'first ms', 'second ms', 'cached tokens'],
    ...rounds.map(({ first, second, cached }, index) => [
      `image ${index + 1}`,
      first.toFixed(0),
      second.toFixed(0),
      String(cached),
    ]),
  ])
  const ratio = median(rounds.map(({ first, second }) => second / first))
  const first = median(rounds.map((round) => round.first))
  const note = 'to the first token, over the first question, 1,024 x 768 pixels, WASM'
  return [
    atMost('image_second_question', ratio, 0.15, note),
    reported('image_first_question_ms', first, 'to the first token; encoder 8 M, decoder 30 M'),
  ]
}
