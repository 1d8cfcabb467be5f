/** The model that suits this device best among those that the catalog lists. */
import type { Device, DeviceSummary, ModelState, Server, Tag } from '../src/index.ts'
import { languageName } from './download-question.ts'
import {
  countParameters,
  describeRate,
  estimateBytes,
  estimateMemory,
  estimateRate,
  keptSpeed,
  placeOf,
  type Speed,
} from './estimate.ts'
import { bytes } from './format.ts'
import { GUIDE, listChatModels, type ListedModel } from './listing.ts'
import { freeBytes } from './look-up.ts'

export interface Recommendation {
  tag: Tag
  name: string
  /** `true` if its files are on this device. */
  isHere: boolean
  /** Size of its download, such as `about 0.6 GB`. */
  size: string
  /** Facts for a visitor, such as its size, its languages and its speed. */
  facts: string[]
}

/** Device that a model has to fit into, and the language of the visitor. */
export interface Place {
  device: Device
  /** Memory in bytes; `null` if the browser does not tell. */
  memory: number | null
  /** Bytes that the browser still stores; `null` if it does not tell. */
  free: number | null
  /** Language of the visitor, such as `de` or `pt-BR`. */
  language: string
  speed: Speed | undefined
}

/** A place with the description of the device that it was read from. */
export interface DevicePlace extends Place {
  summary: DeviceSummary
}

/** Slowest rate in tokens per second at which one reads along. */
const MIN_RATE = 4

/** Largest download in bytes while the speed of the device is not known. */
const CAUTIOUS_BYTES: Readonly<Record<Device, number>> = { wasm: 7e8, webgpu: 2e9 }

/** Memory in bytes of a device whose browser does not tell. */
const USUAL_MEMORY = 4 * 2 ** 30

/** Part of the device's memory for a model. On WASM, the runtime converts weights up to a quarter of it. */
const MEMORY_SHARE: Readonly<Record<Device, number>> = { wasm: 0.25, webgpu: 0.5 }

/** Largest model in bytes on WASM, whose memory has 4 GiB at most. */
const MAX_WASM_BYTES = 2 ** 31

/** Resolves with the facts of this device on which a recommendation depends. */
export async function readPlace(server: Server): Promise<DevicePlace> {
  // This entry comes with the page, so nothing asks a hub.
  const [{ device: summary }, usage] = await Promise.all([
    server.explain(GUIDE),
    server.storage.usage(),
  ])
  return {
    device: placeOf(summary),
    memory: summary.memory,
    free: freeBytes(usage),
    language: navigator.language,
    speed: keptSpeed(summary),
    summary,
  }
}

/** Resolves with the recommendation for a place; with `undefined` if no model fits into it. */
export async function findRecommendation(
  server: Server,
  place: Place,
): Promise<Recommendation | undefined> {
  const [models, states] = await Promise.all([listChatModels(server), server.models.list()])
  return recommend(models, states, place)
}

/** Returns the largest model that fits and is fast enough, before others one that speaks the visitor's language. */
export function recommend(
  models: readonly ListedModel[],
  states: readonly ModelState[],
  place: Place,
): Recommendation | undefined {
  const candidates = models.flatMap((model) => {
    const state = states.find(({ tag }) => tag === model.id)
    return state ? (toCandidate(model, state) ?? []) : []
  })
  const fitting = candidates.filter((one) => fits(one, place))
  const fast = fitting.filter((one) => isFast(one, place))
  const rankOf = (one: Candidate): number[] => [
    Number(speaks(one.model, place.language) !== undefined),
    one.size,
    abilitiesOf(one.model),
  ]
  const [best] = fast.toSorted((one, other) => compare(rankOf(other), rankOf(one)))
  return best && describe(best, place)
}

interface Candidate {
  model: ListedModel
  state: ModelState
  size: number
}

function toCandidate(model: ListedModel, state: ModelState): Candidate | undefined {
  const isOwn = model.id.startsWith('@inorigin/')
  const runsNowhere = state.bytes !== null && state.device === null
  if (isOwn || runsNowhere || model.capabilities?.['image_input']?.supported) return undefined
  const parameters = countParameters(model.parameters ?? model.display_name)
  const size = state.bytes ?? (parameters && estimateBytes(parameters))
  return size ? { model, state, size } : undefined
}

function fits({ state, size }: Candidate, place: Place): boolean {
  if (state.status === 'remote') return isRoomy(size, place, state.memory)
  return isRoomy(size, { ...place, free: null }, state.memory)
}

/** Returns `true` if memory and storage hold a model. `needed` is its memory, if it is known. */
export function isRoomy(
  size: number,
  { device, memory, free }: Place,
  needed: number | null = null,
): boolean {
  const limit = MEMORY_SHARE[device] * (memory ?? USUAL_MEMORY)
  const isLight = (needed ?? estimateMemory(size)) <= limit
  return (
    isLight && (device === 'webgpu' || size <= MAX_WASM_BYTES) && (free === null || size <= free)
  )
}

const isFast = ({ size }: Candidate, { device, speed }: Place): boolean =>
  speed ? estimateRate(size, speed) >= MIN_RATE : size <= CAUTIOUS_BYTES[device]

/** Returns how a model's makers say that it speaks a language; `undefined` if they do not. */
function speaks({ languages, description }: ListedModel, language: string): string | undefined {
  const [primary = language] = language.split('-')
  if (languages?.some((one) => one.split('-')[0] === primary)) {
    return `answers in your language, ${languageName(primary)}`
  }
  return !languages && /many languages/i.test(description ?? '')
    ? 'knows many languages'
    : undefined
}

const abilitiesOf = ({ capabilities }: ListedModel): number =>
  ['tools', 'thinking', 'structured_outputs'].filter((name) => capabilities?.[name]?.supported)
    .length

/** Compares lists of numbers by the first in which they differ. */
function compare(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((value, index) => value !== other[index])
  return (one[at] ?? 0) - (other[at] ?? 0)
}

function describe({ model, state, size }: Candidate, { language, speed }: Place): Recommendation {
  const words = state.bytes === null ? `about ${bytes(size)}` : bytes(size)
  const isHere = state.status !== 'remote'
  return {
    tag: model.id,
    name: model.display_name,
    isHere,
    size: words,
    facts: [
      isHere ? `${words}, on this device` : `${words} to download`,
      speaks(model, language) ?? `does not list your language, ${languageName(language)}`,
      ...(speed ? [`${describeRate(estimateRate(size, speed))} here (estimate)`] : []),
    ],
  }
}
