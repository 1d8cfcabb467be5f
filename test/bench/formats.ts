/** Formats of weights on WASM: ours, by size of the model and number of threads. */
import type { Site } from '../support/site.ts'
import { openOnWasm } from './compare.ts'
import { defaultFormat } from './default-format.ts'
import { atLeast, type Figure, median } from './figure.ts'
import type { OnnxFormat, ShapeName } from './models/shapes.ts'

const FORMATS: readonly OnnxFormat[] = ['q8', 'uint8', 'q4', 'q4a4', 'bnb4', 'q4f16', 'fp32']
export const MEASURED_SHAPES: readonly ShapeName[] = ['30M', '135M', '500M']

const CONTEXT = 64
const PROMPT = 512
/** Tokens of one decode. */
const ANSWER = 16

/** Tokens per second. */
interface Rates {
  decode: number
  prefill: number
}

/** Prints what each format does, or why it does not run, for each of the shapes. */
export async function printFormats(site: Site, shapes: readonly ShapeName[]): Promise<void> {
  const print = (...cells: string[]) => console.log(cells.map((cell) => cell.padEnd(18)).join(''))
  print('1 / 2 threads', `decode at ${CONTEXT}`, `prefill of ${PROMPT}`)
  for (const shape of shapes) {
    for (const format of FORMATS) {
      const one = await measure(site, shape, format, 1)
      const two = await measure(site, shape, format, 2)
      const cells =
        typeof one === 'string' || typeof two === 'string'
          ? [`one thread: ${show(one)}; two: ${show(two)}`]
          : [
              `${one.decode.toFixed(1)} / ${two.decode.toFixed(1)}`,
              `${one.prefill.toFixed(0)} / ${two.prefill.toFixed(0)}`,
            ]
      // A row is shown when it is measured, since all take many minutes.
      print(`${shape} ${format}`, ...cells)
    }
  }
}

const show = (measured: Rates | string): string =>
  typeof measured === 'string' ? measured : measured.decode.toFixed(1)

/** Compares the format that the catalog chooses with the fastest. */
export async function compareDefault(site: Site): Promise<Figure[]> {
  const rates = new Map<OnnxFormat, number>()
  for (const format of FORMATS) {
    const measured = await measure(site, '135M', format, 2)
    if (typeof measured !== 'string') rates.set(format, measured.decode)
  }
  const chosen = defaultFormat([...rates.keys()])
  const [best, fastest] = [...rates].reduce((a, b) => (b[1] > a[1] ? b : a))
  const ratio = (rates.get(chosen) ?? NaN) / fastest
  const note = `${chosen}, which the catalog chooses, over ${best}, 135M, two threads`
  return [atLeast('wasm_default_vs_best', ratio, 0.95, note)]
}

/** Resolves to the reason if the format does not run. */
async function measure(
  site: Site,
  model: ShapeName,
  format: OnnxFormat,
  threads: number,
): Promise<Rates | string> {
  const side = await openOnWasm(site, 'inorigin', { model, format, threads }).catch(
    (error: unknown) => String(error).split('\n')[0] ?? '',
  )
  if (typeof side === 'string') return side
  try {
    await side.run({ prompt: 8, seed: 1, answer: 4 })
    const rates: number[] = []
    // The largest takes a second for a token.
    const rounds = model === '500M' ? 1 : 3
    for (let round = 0; round < rounds; round += 1) {
      const { rate } = await side.run({ prompt: CONTEXT, seed: 10 + round, answer: ANSWER })
      rates.push(rate)
    }
    const { first } = await side.run({ prompt: PROMPT, seed: 20, answer: 2 })
    return { decode: median(rates), prefill: (PROMPT / first) * 1_000 }
  } finally {
    await side.close()
  }
}
