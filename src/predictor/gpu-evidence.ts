/** Counts the inputs for which a GPU agreed with the CPU, until that is enough for a verdict. */
import type { Tensor } from 'onnxruntime-web'
import type { Agreement } from './compare-tensors.ts'

/** Number of inputs, out of three, that decide: two that agree, or two that differ. */
const DECISIVE_INPUTS = 2

/**
 * Number of runs after which a single input decides, for a caller that only ever sends the same one.
 * Silence never decides.
 */
const MAX_RUNS = 64

type Feeds = Record<string, Tensor>

/** Copy of the elements of one tensor. */
interface Copy {
  data: ArrayLike<unknown>
  shape: string
}

/** Copy of an input of the model, by the names of its tensors. */
type Input = ReadonlyMap<string, Copy>

export interface Evidence {
  /** Returns `true` for the input of the last comparison, if both devices agreed. */
  isKnown(feeds: Feeds): boolean
  /** Counts a further run of a known input, on which the GPU computed the same again. */
  addRepetition(): void
  /** Adds the comparison of an input; `why` describes the difference. */
  add(feeds: Feeds, agreement: Agreement, why: string): void
  /** Returns `true` if enough inputs agreed. */
  isComplete(): boolean
  /** Returns `true` if enough inputs differed. */
  isRefuted(): boolean
  /** Returns a description of the verdict, without a period. */
  describe(): string
}

export function createEvidence(): Evidence {
  let last: { input: Input; agrees: boolean } | undefined
  /** Inputs of the model that have had several values. With silence, wrong kernels return zeros. */
  const varied = new Set<string>()
  let runs = 0
  let agreeing = 0
  let differing = 0
  let difference = ''

  const isRefuted = () =>
    differing >= DECISIVE_INPUTS ||
    (runs >= MAX_RUNS && differing > 0 && agreeing < DECISIVE_INPUTS)

  return {
    isKnown: (feeds) => last?.agrees === true && isSameInput(last.input, feeds),
    addRepetition: () => void (runs += 1),
    add(feeds, agreement, why) {
      const isRepeated = last !== undefined && isSameInput(last.input, feeds)
      last = { input: copyOf(feeds), agrees: agreement === 'same' }
      runs += 1
      if (agreement === 'same') {
        const uniform = findUniform(feeds)
        for (const name of Object.keys(feeds)) if (!uniform.includes(name)) varied.add(name)
        if (!isRepeated && uniform.every((name) => varied.has(name))) agreeing += 1
        return
      }
      difference = why
      if (agreement === 'gross') differing = DECISIVE_INPUTS
      else if (!isRepeated) differing += 1
    },
    isComplete: () => agreeing >= (runs < MAX_RUNS ? DECISIVE_INPUTS : 1),
    isRefuted,
    describe: () =>
      isRefuted() ? difference : `it agrees with the CPU on ${runs} of the first inputs`,
  }
}

/** Returns the names of inputs with many numbers that are all the same, such as silence. */
function findUniform(feeds: Feeds): string[] {
  return Object.entries(feeds)
    .filter(([, { type, data, size }]) => {
      const hasSignal = type.startsWith('float') || type === 'uint8'
      if (!hasSignal || size < 2) return false
      const elements = data as Float32Array
      return elements.every((element) => element === elements[0])
    })
    .map(([name]) => name)
}

function copyOf(feeds: Feeds): Input {
  const copies = Object.entries(feeds).map(([name, { data, dims }]): [string, Copy] => [
    name,
    { data: (data as Float32Array).slice(), shape: dims.join() },
  ])
  return new Map(copies)
}

function isSameInput(before: Input, feeds: Feeds): boolean {
  return Object.entries(feeds).every(([name, { data, dims }]) => {
    const old = before.get(name)
    if (old?.shape !== dims.join()) return false
    const elements = data as Float32Array
    return elements.every((element, index) => element === old.data[index])
  })
}
