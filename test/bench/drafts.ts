/** What it is worth to guess tokens ahead: the same decodes with and without it, in turns. */
import type { Site } from '../support/site.ts'
import { prepareModel } from './compare.ts'
import { SMALL, type Effort } from './decode.ts'
import { atLeast, median, type Figure } from './figure.ts'
import { openSide, type OpenSide } from './open-side.ts'
import type { Task } from './side.ts'

/** Random weights know nothing to quote, but repeat themselves where that is rewarded. */
const REPEATING = { frequencyPenalty: -2 }
const NEW = { temperature: 2 }

/** On WebGPU. */
export async function measureDrafts(site: Site, { rounds, answer }: Effort): Promise<Figure[]> {
  prepareModel('small', 'fp32')
  const sides: OpenSide[] = []
  const open = async (drafts: boolean): Promise<OpenSide> => {
    const side = await openSide(site, 'inorigin')
    sides.push(side)
    await side.order({ type: 'open', ...SMALL, device: 'webgpu', drafts })
    return side
  }
  try {
    const [plain, guessing] = [await open(false), await open(true)]
    const compare = async (
      name: string,
      bar: number,
      sampling: NonNullable<Task['sampling']>,
    ): Promise<Figure> => {
      const ratios: number[] = []
      const dispatches: number[] = []
      // In the first round it learns what a guess costs.
      for (let round = 0; round <= rounds; round += 1) {
        const task = { prompt: 16, seed: 300 + round, answer, sampling }
        // Who goes first changes, so that a machine that slows down does not favour one of them.
        const early = round % 2 === 1 ? await guessing.run(task) : null
        const without = await plain.run(task)
        const having = early ?? (await guessing.run(task))
        if (without.text !== having.text) throw new Error('Guesses changed the text.')
        if (round === 0) continue
        ratios.push(having.rate / without.rate)
        dispatches.push(having.work.dispatches / without.work.dispatches)
      }
      const note = `tokens/s with guesses over without, for ${median(dispatches).toFixed(2)} of the dispatches`
      return atLeast(name, median(ratios), bar, note)
    }
    return [
      await compare('drafts_repeating_webgpu', 1, REPEATING),
      await compare('drafts_new_webgpu', 0.95, NEW),
    ]
  } finally {
    for (const side of sides) await side.close()
  }
}
