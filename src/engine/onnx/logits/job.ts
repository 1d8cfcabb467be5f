/** Encodes the requests for candidates of each row as input of the shaders. */
import type { Adjustments, CandidateRequest } from '../../decoder.ts'
import { repetitionFactors } from '../../sampling/adjust.ts'
import { CHUNK_LOGITS, ENTRY_WORDS, HEAD_WORDS, ROW_WORDS } from './layout.ts'

/** Location and type of the selected rows of logits. */
interface Rows {
  /** `true` if the logits are float16. */
  half: boolean
  /** Index in the buffer of each selected row. */
  order: readonly number[]
  vocabulary: number
}

/** Input of the shaders. */
interface Job {
  /** Encoded job; see `layout.ts`. */
  words: Uint32Array<ArrayBuffer>
  /** Number of chunks of a row. */
  chunks: number
  /** Number of candidates that a record has room for. */
  slots: number
}

/** Maximum of 1 / temperature, which must be finite for the shaders. */
const MAX_INVERSE_TEMPERATURE = 1e30

/** Creates a job; `asks` has one item per row. */
export function createJob(
  { half, order, vocabulary }: Rows,
  asks: readonly CandidateRequest[],
): Job {
  const chunks = Math.ceil(vocabulary / CHUNK_LOGITS)
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
    floats[row + 2] = temperature > 0 ? Math.min(1 / temperature, MAX_INVERSE_TEMPERATURE) : 0
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

/** Merges the repetition penalty and the logit bias into one entry per token, sorted by id. */
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
