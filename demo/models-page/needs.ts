/** Needs of an entry: memory, and a place where it runs. */
import type { ModelState, Reason } from '../../src/index.ts'
import { countParameters, estimateBytes, estimateMemory } from '../estimate.ts'
import { bytes } from '../format.ts'
import type { ListedModel } from '../listing.ts'

/** Returns the download in bytes that the parameters of a model suggest; `undefined` if they are not known. */
export function guessBytes(listed: ListedModel | undefined): number | undefined {
  const parameters = countParameters(listed?.parameters ?? listed?.display_name ?? '')
  return parameters && estimateBytes(parameters)
}

/** Returns the needs in words. `reasons` are those for and against each way to run it, if they are known. */
export function describeNeeds(
  { memory, bytes: size }: ModelState,
  listed: ListedModel | undefined,
  reasons: readonly Reason[] | undefined,
): string {
  const guess = guessBytes(listed)
  const room = memory ? bytes(memory) : guess ? `about ${bytes(estimateMemory(guess))}` : undefined
  const places = size === null ? UNKNOWN_PLACES : reasons && describePlaces(reasons)
  const parts = [room && `${room} of memory`, places].filter(Boolean)
  return parts.join('; ') || 'not looked up yet'
}

/** Places of an export for the web whose files are not known. */
const UNKNOWN_PLACES = 'WebGPU or WASM, and shader-f16 for weights of 16 bits'

function describePlaces(reasons: readonly Reason[]): string {
  const onGpu = reasons.filter(({ device }) => device === 'webgpu')
  // Ids begin with the precision, such as `q4f16-webgpu`.
  const half = onGpu.filter(({ id }) => /^\w*f(p)?16\b/.test(id))
  const gpu =
    half.length === 0
      ? 'WebGPU'
      : half.length < onGpu.length
        ? 'WebGPU (the fastest way with shader-f16)'
        : 'WebGPU with shader-f16'
  const places = [
    ...(onGpu.length > 0 ? [gpu] : []),
    ...(reasons.some(({ device }) => device === 'wasm') ? ['WASM'] : []),
  ]
  return places.join(' or ')
}
