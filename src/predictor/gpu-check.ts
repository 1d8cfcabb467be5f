/**
 * Checks the GPU for one predictor: its first outputs are compared with those that the same files
 * give on the CPU, from the inputs of callers. Some kernels compute wrong numbers without any error.
 */
import type { Tensor } from 'onnxruntime-web'
import { type GpuComparison, gpuDiffers } from '../device/gpu-verdict.ts'
import type { Session } from '../engine/onnx/runtime.ts'
import { InoriginError } from '../error.ts'
import type { Device } from '../types/index.ts'
import type { ChoiceSource } from './chosen-from.ts'
import { type Agreement, compareTensors } from './compare-tensors.ts'
import { createEvidence } from './gpu-evidence.ts'
import { fromTensor } from './tensor.ts'

type Feeds = Record<string, Tensor>

/** Reasons for which no input is compared any more, and the GPU's self-test must do. */
const UNCOMPARABLE = 'the CPU cannot run the same files, so its outputs were not compared'
const RANDOM = 'the model computes random numbers, so its outputs were not compared'

/** Session on the CPU with the same files. */
export interface ReferenceSession {
  session: Session
  /** Numbers from which integer and boolean outputs were chosen, by output. */
  sources: ReadonlyMap<string, ChoiceSource>
}

export interface GpuCheckOptions {
  /** Session on the GPU. */
  session: Session
  /** Opens a session on the CPU that also computes what those outputs were chosen from. */
  openReference(wanted: readonly string[]): Promise<ReferenceSession>
  /** Called once with the result of the check. */
  onComparison(comparison: GpuComparison): void
}

export interface CheckedRun {
  results: Record<string, Tensor>
  /** Device that computed the results. */
  device: Device
}

export interface GpuCheck {
  /**
   * Runs the graph, on both devices until there is a verdict. Resolves with the results of the CPU
   * where they differ. Rejects with `gpu_untrusted` once the verdict is that the GPU is wrong. The
   * error has the comparison in its `details`.
   */
  run(feeds: Feeds, wanted: readonly string[]): Promise<CheckedRun>
  /** Frees the session on the CPU. */
  release(): Promise<void>
}

export function createGpuCheck(options: GpuCheckOptions): GpuCheck {
  const { session, openReference, onComparison } = options
  const evidence = createEvidence()
  const reference = createReferenceRuns(openReference)
  let comparison: GpuComparison | undefined

  async function conclude(found: GpuComparison): Promise<void> {
    comparison = found
    onComparison(found)
    await reference.release()
  }

  /** Runs on both devices. Resolves with the results of the CPU if they differ. */
  async function compare(feeds: Feeds, wanted: readonly string[]): Promise<CheckedRun> {
    const onGpu: CheckedRun = { results: await session.run(feeds, wanted), device: 'webgpu' }
    if (reference.lastAgreed && evidence.isKnown(feeds)) {
      const { agreement } = compareRuns(onGpu.results, reference.lastAgreed, wanted)
      if (agreement === 'same') {
        evidence.addRepetition()
        return onGpu
      }
    }
    const onCpu = await reference.run(feeds, wanted)
    if (!onCpu) {
      await conclude({ agrees: true, why: UNCOMPARABLE, isTransient: true })
      return onGpu
    }
    const { agreement, why } = compareRuns(onGpu.results, onCpu, wanted)
    if (agreement === 'same') {
      evidence.add(feeds, agreement, why)
      reference.keepAgreed(onCpu)
      return onGpu
    }
    dispose(onGpu.results)
    const isRandom = await differsFromItself(onCpu, await reference.opening, feeds, wanted)
    if (isRandom) await conclude({ agrees: true, why: RANDOM })
    else evidence.add(feeds, agreement, why)
    return { results: onCpu.results, device: 'wasm' }
  }

  return {
    async run(feeds, wanted) {
      if (comparison?.agrees === false) throw gpuDiffers(comparison)
      if (comparison) return { results: await session.run(feeds, wanted), device: 'webgpu' }
      const run = await compare(feeds, wanted)
      // The comparison itself may have ended the check.
      if (comparison) return run
      if (evidence.isRefuted()) {
        dispose(run.results)
        const refuted = { agrees: false, why: evidence.describe() }
        await conclude(refuted)
        throw gpuDiffers(refuted)
      }
      if (evidence.isComplete()) await conclude({ agrees: true, why: evidence.describe() })
      return run
    },
    release: reference.release,
  }
}

interface ReferenceRuns {
  /** Session on the CPU; `undefined` before the first run and after `release`. */
  readonly opening: Promise<ReferenceSession> | undefined
  /** Results of the CPU for the last input on which both devices agreed. */
  readonly lastAgreed: ReferenceRun | undefined
  /** Runs on the CPU. Resolves with `null` if that fails. */
  run(feeds: Feeds, wanted: readonly string[]): Promise<ReferenceRun | null>
  keepAgreed(run: ReferenceRun): void
  /** Frees the session and its results. */
  release(): Promise<void>
}

function createReferenceRuns(open: GpuCheckOptions['openReference']): ReferenceRuns {
  let opening: Promise<ReferenceSession> | undefined
  let lastAgreed: ReferenceRun | undefined

  function replaceAgreed(run: ReferenceRun | undefined): void {
    if (lastAgreed) dispose(lastAgreed.results)
    lastAgreed = run
  }

  return {
    get opening() {
      return opening
    },
    get lastAgreed() {
      return lastAgreed
    },
    run(feeds, wanted) {
      opening ??= open(wanted)
      return runReference(opening, feeds, wanted)
    },
    keepAgreed: replaceAgreed,
    async release() {
      replaceAgreed(undefined)
      const opened = await opening?.catch(() => undefined)
      opening = undefined
      await opened?.session.release()
    },
  }
}

interface ReferenceRun {
  results: Record<string, Tensor>
  sources: ReadonlyMap<string, ChoiceSource>
}

/** Resolves with the outputs of the CPU, with what they were chosen from; `null` if it fails. */
async function runReference(
  opening: Promise<ReferenceSession>,
  feeds: Feeds,
  wanted: readonly string[],
): Promise<ReferenceRun | null> {
  try {
    const { session, sources } = await opening
    const chosenFrom = [...sources.values()].flatMap(({ tensors }) => tensors)
    const names = [...new Set([...wanted, ...chosenFrom])]
    return { results: await session.run(feeds, names), sources }
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    // The runtime cannot be used after these, on either device.
    if (error.code === 'device_lost' || error.code === 'runtime_crashed') throw error
    return null
  }
}

/** Returns how the outputs agree, by the one that agrees least. */
function compareRuns(
  computed: Record<string, Tensor>,
  { results, sources }: ReferenceRun,
  wanted: readonly string[],
): { agreement: Agreement; why: string } {
  let worst: { agreement: Agreement; why: string } = { agreement: 'same', why: '' }
  for (const name of wanted) {
    const [our, their] = [computed[name], results[name]]
    if (!our || !their) throw new InoriginError('internal', `The model returned no ${name}.`)
    const agreement = compareOutput(name, our, { results, sources })
    if (agreement === 'same' || worst.agreement === 'gross') continue
    if (worst.agreement === agreement) continue
    worst = { agreement, why: describeDifference(name, our, their) }
  }
  return worst
}

function compareOutput(name: string, our: Tensor, { results, sources }: ReferenceRun): Agreement {
  const source = sources.get(name)
  const [first, second] = source?.tensors.map((tensor) => results[tensor]) ?? []
  const their = results[name] ?? our
  if (!source || !first) return compareTensors(fromTensor(our), fromTensor(their))
  const chosen = second
    ? ([fromTensor(first), fromTensor(second)] as const)
    : ([fromTensor(first)] as const)
  const { choice } = source
  return compareTensors(fromTensor(our), fromTensor(their), { choice, tensors: chosen })
}

/** Describes the first elements that are far from each other, for a reader. */
function describeDifference(name: string, our: Tensor, their: Tensor): string {
  const [ours, theirs] = [fromTensor(our).data, fromTensor(their).data]
  if (ours.length !== theirs.length)
    return `${name} has ${ours.length} elements on the GPU and ${theirs.length} on the CPU`
  let at = 0
  let most = 0
  for (let index = 0; index < theirs.length; index += 1) {
    const far = Math.abs(Number(ours[index]) - Number(theirs[index]))
    if (far > most || (Number.isNaN(far) && most < Infinity))
      [at, most] = [index, Number.isNaN(far) ? Infinity : far]
  }
  const show = (value: unknown) =>
    typeof value === 'number' ? String(Number(value.toPrecision(4))) : String(value)
  return `${name}[${at}] is ${show(ours[at])} on the GPU and ${show(theirs[at])} on the CPU`
}

/** Resolves with `true` if a second run on the CPU differs from the first. */
async function differsFromItself(
  first: ReferenceRun,
  reference: ReferenceSession | undefined,
  feeds: Feeds,
  wanted: readonly string[],
): Promise<boolean> {
  const again = reference && (await runReference(Promise.resolve(reference), feeds, wanted))
  if (!again) return false
  const { agreement } = compareRuns(again.results, first, wanted)
  dispose(again.results)
  return agreement !== 'same'
}

function dispose(results: Record<string, Tensor>): void {
  for (const tensor of Object.values(results)) tensor.dispose()
}
