/** Runs the calls of a predictor one after the other. A call may need several runs of its graph. */
import type { PredictorEntry } from '../catalog/schema.ts'
import type { Ort } from '../engine/onnx/ort.ts'
import { createYielder } from '../engine/run/yielder.ts'
import { InoriginError } from '../error.ts'
import type { Device, SessionPrediction } from '../types/index.ts'
import { unlessAborted } from '../values/unless-aborted.ts'
import type { BoundSignature } from './bound.ts'
import { type Carried, type PlannedRuns, toNextTensors } from './carry.ts'
import { decodeRuns } from './decode-runs.ts'
import type { GpuCheck } from './gpu-check.ts'
import { assertNotAborted, cancelledError, runGraph } from './run-graph.ts'
import type { RawTensor } from './tensor.ts'

interface PlanRunnerOptions {
  entry: Pick<PredictorEntry, 'tag'>
  /** Device of predictions, unless `run` reports another one. */
  device: Device
  ort: Ort
  run: GpuCheck['run']
  bound: BoundSignature
  /** Frees the model. */
  close(): Promise<void>
}

export interface PlanRunner {
  /**
   * Runs a plan in its turn, from the state `carried`; `null` for a call on its own. An invalid plan
   * rejects at once.
   */
  run(
    planned: Promise<PlannedRuns>,
    carried: Carried | null,
    signal: AbortSignal,
  ): Promise<SessionPrediction>
  /** Frees the model after the current run. */
  close(): Promise<void>
}

export function createPlanRunner({
  entry: { tag },
  device: wantedDevice,
  ort,
  run,
  bound,
  close,
}: PlanRunnerOptions): PlanRunner {
  const yielder = createYielder()
  let last: Promise<unknown> = Promise.resolve()
  let closing: Promise<void> | null = null

  async function runAll(
    planned: PlannedRuns,
    carried: Carried | null,
    signal: AbortSignal,
  ): Promise<Pick<SessionPrediction, 'outputs' | 'state' | 'device'>> {
    let tensors = carried?.tensors ?? {}
    let device = wantedDevice
    const runs: Map<string, RawTensor>[] = []
    for (let index = 0; index < planned.count; index++) {
      // The pause lets the worker receive abort messages between two runs.
      await yielder.next()
      assertNotAborted(signal)
      const ran = await runGraph(ort, run, bound, planned.check(index, tensors), signal)
      device = ran.device
      tensors = toNextTensors(bound.states, ran.outputs)
      runs.push(ran.outputs)
    }
    const outputs = decodeRuns(bound, runs, planned.isWindowed, carried !== null)
    const state = { tensors, sound: planned.sound ?? carried?.sound ?? null }
    return { outputs, state, device }
  }

  return {
    async run(planned, carried, signal) {
      const planning = planned.then((plan) => ({ plan, start: performance.now() }))
      // The turn reports the same error later.
      planning.catch(() => undefined)
      assertNotAborted(signal)
      if (closing)
        throw new InoriginError('unavailable', `${tag} has been unloaded. Load it again.`)
      const queued = last.then(async () => runAll((await planning).plan, carried, signal))
      last = queued.catch(() => undefined)
      const done = Promise.all([planning, queued])
      const [{ start }, ran] = await unlessAborted(done, signal, () => cancelledError(signal))
      return { tag, ...ran, latency: performance.now() - start }
    },
    close() {
      closing ??= last.then(() => {
        yielder.close()
        return close()
      })
      return closing
    },
  }
}
