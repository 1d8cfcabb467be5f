/** Which request a step of the soak sends, and what happens meanwhile. Both follow from seed and number. */
import type { Question } from '../support/requests.ts'
import { bodyOf, CASES, STYLES, type Case } from '../support/generation-cases.ts'
import { createChance, type Chance } from '../support/random.ts'
import { FAULTS, type FaultName } from './faults.ts'

export interface Step {
  index: number
  fault: FaultName
  question: Question
  content: Case
  /** Number of the tab that asks. It counts the tabs that may ask. */
  asker: number
  /** Number that a fault may draw from. */
  chance: Chance
}

/** How often a fault comes, compared with the others. */
const WEIGHTS: Readonly<Record<FaultName, number>> = {
  none: 2,
  'tab closed': 6,
  'tab reloaded': 4,
  'renderer crashed': 6,
  'host worker ended': 6,
  'model worker ended': 6,
  'service worker stopped': 5,
  'service worker updated': 4,
  'clock jump': 4,
  'network cut': 4,
  'quota exhausted': 3,
  'host frozen': 1,
  'device destroyed': 0.5,
}

/** Seeds of sampled answers. There are few, so that the undisturbed answers are few, too. */
const SEEDS = [7, 8]
/** Tokens of an answer: long enough for a fault to hit it, on the GPU that is made of software as well. */
const TOKENS = 400
const DEVICE_TOKENS = 16

/** Returns the step of that number. */
export function planStep(seed: number, index: number, only?: FaultName): Step {
  const chance = createChance(seed * 1_000_003 + index)
  const fault = only ?? pickFault(chance)
  const style = chance.pick(STYLES)
  const isDevice = fault === 'device destroyed'
  const content = isDevice ? 'greedy' : chance.pick(CASES)
  const tokens = isDevice ? DEVICE_TOKENS : TOKENS
  const stream = chance.often(0.75)
  const body = { ...bodyOf(style, content, tokens, chance.pick(SEEDS)) }
  return {
    index,
    fault,
    content,
    chance,
    asker: chance.below(3),
    question: {
      style,
      body: FAULTS[fault].downloads ? { ...body, model: '@soak/guide' } : body,
      stream,
      client: chance.often(0.7) ? 'fetch' : 'server.fetch',
      frames: stream ? chance.below(isDevice ? 5 : 12) : 0,
      abortAfter: stream && chance.often(0.12) ? 1 + chance.below(20) : null,
    },
  }
}

function pickFault(chance: Chance): FaultName {
  const names = Object.keys(WEIGHTS) as FaultName[]
  const total = names.reduce((sum, name) => sum + WEIGHTS[name], 0)
  let left = (chance.below(2 ** 20) / 2 ** 20) * total
  return names.find((name) => (left -= WEIGHTS[name]) < 0) ?? 'none'
}
