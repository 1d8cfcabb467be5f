/** What it is worth to guess tokens ahead: the same decodes with and without it, in turns. */
import type { Site } from '../support/site.ts'
import { openSide, type OpenSide } from './compare.ts'
import type { Effort } from './decode.ts'
import { atLeast, median, type Figure } from './figure.ts'
import type { Run, Task } from './side.ts'

/** Enough tokens to learn what a guess costs and gain by it. */
const ANSWER = 64

/** Random weights know nothing to quote, but repeat themselves where that is rewarded. */
const REPEATING = { frequencyPenalty: -2 }
const NEW = { temperature: 2 }

/** On WebGPU. */
export async function measureDrafts(site: Site, { rounds }: Effort): Promise<Figure[]> {
  const sides: OpenSide[] = []
  const open = async (drafts: boolean): Promise<OpenSide> => {
    const side = await openSide(site, 'inorigin')
    sides.push(side)
    await side.order({ type: 'open', model: 'small', device: 'webgpu', drafts })
    return side
  }
  try {
    const [plain, guessing] = [await open(false), await open(true)]
    const compare = async (sampling: NonNullable<Task['sampling']>): Promise<number> => {
      const ratios: number[] = []
      // In the first round it learns what a guess costs.
      for (let round = 0; round <= rounds; round += 1) {
        const once = async (side: OpenSide): Promise<Run> => {
          const task = { prompt: 64, seed: 300 + round, answer: ANSWER, sampling }
          const { runs } = await side.order({ type: 'run', tasks: [task], together: false })
          return runs[0] as Run
        }
        const [without, having] = [await once(plain), await once(guessing)]
        if (without.text !== having.text) throw new Error('Guesses changed the text.')
        if (round > 0) ratios.push(having.rate / without.rate)
      }
      return median(ratios)
    }
    const note = 'tokens/s with guesses over without'
    return [
      atLeast('drafts_repeating_webgpu', await compare(REPEATING), 1, `${note}, much repeated`),
      atLeast('drafts_new_webgpu', await compare(NEW), 0.95, `${note}, nothing repeated`),
    ]
  } finally {
    for (const side of sides) await side.close()
  }
}
