/** How decoding slows down in long conversations on WASM. */
import type { Site } from '../support/site.ts'
import { openOnWasm } from './compare.ts'
import { defaultFormat } from './default-format.ts'
import { type Figure, reported } from './figure.ts'

const CONTEXTS = [64, 2_048, 4_096]
/** Tokens of one decode. */
const ANSWER = 32

/** Ours on a model of 135 M parameters with two threads. */
export async function measureContext(site: Site): Promise<Figure[]> {
  const format = defaultFormat(['q8', 'q4'])
  const side = await openOnWasm(site, 'inorigin', { model: '135M', format, threads: 2 })
  try {
    await side.run({ prompt: 8, seed: 1, answer: 4 })
    const figures: Figure[] = []
    for (const context of CONTEXTS) {
      const { rate, first } = await side.run({ prompt: context, seed: 2, answer: ANSWER })
      const note = `tokens/s, ${format}, two threads; first token after ${(first / 1_000).toFixed(1)} s`
      figures.push(reported(`wasm_decode_${context}`, rate, note))
    }
    return figures
  } finally {
    await side.close()
  }
}
