/** What the shaders are told: asks as words. */
import type { Adjustments, Ask } from '../../decoder.ts'
import { repetitionFactors } from '../../sampling/adjust.ts'
import { CHUNK, ENTRY_WORDS, HEAD_WORDS, ROW_WORDS } from './layout.ts'

/** Where rows of scores lie. */
export interface Rows {
  half: boolean
  /** The buffer's row of each row that is meant. */
  order: readonly number[]
  vocabulary: number
}

export interface Job {
  words: Uint32Array<ArrayBuffer>
  chunks: number
  slots: number
}

/** 1 / temperature is finite for the shaders. */
const COLDEST = 1e30

/** `asks` has one for each row. */
export function createJob({ half, order, vocabulary }: Rows, asks: readonly Ask[]): Job {
  const chunks = Math.ceil(vocabulary / CHUNK)
  const slots = Math.min(vocabulary, Math.max(...asks.map(({ count }) => count)))
  const entries = asks.map(({ adjustments }) => entriesOf(adjustments, vocabulary))
  const maskWords = Math.ceil(vocabulary / 32)
  const masked = asks.filter(({ adjustments }) => adjustments?.mask).length
  const entryCount = entries.reduce((sum, { length }) => sum + length, 0)
  const head = HEAD_WORDS + ROW_WORDS * order.length
  const words = new Uint32Array(head + ENTRY_WORDS * entryCount + maskWords * masked)
  const floats = new Float32Array(words.buffer)
  words.set([vocabulary, half ? 1 : 0, chunks, slots])

  let next = head
  asks.forEach(({ count, temperature, adjustments }, index) => {
    const row = HEAD_WORDS + ROW_WORDS * index
    const own = entries[index] as Entry[]
    words[row] = (order[index] as number) * vocabulary
    words[row + 1] = Math.min(count, vocabulary)
    floats[row + 2] = temperature > 0 ? Math.min(1 / temperature, COLDEST) : 0
    words[row + 3] = next
    words[row + 4] = own.length
    for (const { id, positive, negative, amount } of own) {
      words[next] = id
      floats.set([positive, negative, amount], next + 1)
      next += ENTRY_WORDS
    }
    const mask = adjustments?.mask
    if (!mask) return
    words[row + 5] = next
    words.set(mask.subarray(0, maskWords), next)
    next += maskWords
  })
  return { words, chunks, slots }
}

interface Entry {
  id: number
  positive: number
  negative: number
  amount: number
}

/** Penalties and bias together, by rising id. */
function entriesOf({ repetition, bias }: Adjustments = {}, vocabulary: number): Entry[] {
  const entries = new Map<number, Entry>()
  if (repetition) {
    const factors = repetitionFactors(repetition.factor)
    for (const id of repetition.ids) entries.set(id, { id, ...factors, amount: 0 })
  }
  bias?.ids.forEach((id, index) => {
    const entry = entries.get(id) ?? { id, positive: 1, negative: 1, amount: 0 }
    entries.set(id, { ...entry, amount: bias.amounts[index] as number })
  })
  return [...entries.values()].filter(({ id }) => id < vocabulary).sort((a, b) => a.id - b.id)
}
