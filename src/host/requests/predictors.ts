/** The operations of predictors, over HTTP and for the page's server handle. */
import { toPredictor } from '../../catalog/find-entry.ts'
import { closeImages } from '../../predictor/transferable-inputs.ts'
import type {
  Caller,
  Control,
  DirectPredictor,
  Host,
  PredictionStep,
  Tag,
} from '../../types/index.ts'
import type { RecentInputs } from '../choice/recent-inputs.ts'
import { type Entries, findPredictor } from '../library/entries.ts'
import type { Predictions } from '../library/predictions.ts'
import { type Leases, withLoaded } from './leases.ts'
import { streamPrediction } from './prediction-stream.ts'
import { Queue } from './queue.ts'

/** Creates the operations of the page's server handle. */
export function createPredictorControl(
  entries: Entries,
  leases: Leases,
  recentInputs: RecentInputs,
) {
  /** Calls the worker of a predictor, and loads it first if necessary. */
  function callWorker<Result>(
    tag: Tag,
    inputs: Record<string, unknown>,
    configuration: string | undefined,
    caller: Caller<PredictionStep>,
    call: (worker: DirectPredictor, caller: Caller<{ text: string }>) => Promise<Result>,
  ): Promise<Result> {
    const { signal, onEvent } = caller
    const acquire = () => leases.acquirePredictor(tag, configuration, signal)
    const loaded = withLoaded(acquire, caller, async ({ entry, worker }) => {
      const result = await call(worker, { key: null, signal, onEvent })
      recentInputs.keep(entry, inputs)
      return result
    })
    // The inputs were copied when they crossed the port, so the caller keeps its own.
    return loaded.finally(() => closeImages(inputs))
  }

  return {
    describePredictor: async (tag, { signal }) =>
      toPredictor(await findPredictor(entries, tag, signal)),
    predict: (tag, inputs, configuration, caller) =>
      callWorker(tag, inputs, configuration, caller, (worker, own) => worker.predict(inputs, own)),
    predictNext: (tag, inputs, configuration, state, caller) =>
      callWorker(tag, inputs, configuration, caller, (worker, own) =>
        worker.predictNext(inputs, state, own),
      ),
  } satisfies Partial<Control>
}

/** Creates the operations over HTTP. They run the predictors of `control`. */
export function createHttpPredictors(
  predictions: Predictions,
  control: Pick<Control, 'describePredictor' | 'predict'>,
) {
  /** Queue of all predictions. Each also waits for its predictor, which runs one by one. */
  const queue = new Queue({ maxRunning: 32, maxPerClient: 64, maxTotal: 256 })
  return {
    predictor: control.describePredictor,
    createPrediction: (request, caller) => predictions.create(request, caller.signal),
    async createRemotePrediction(request, caller) {
      const { tag, signature } = await control.describePredictor(request.tag, caller)
      const ticket = queue.enqueue(caller.client ?? '', caller.signal)
      try {
        const { runRemotely } = await import('../../predictor/remote/run.ts')
        return await runRemotely({ ...request, tag }, signature, (inputs) =>
          streamPrediction((onEvent) =>
            ticket.granted
              .then(() => control.predict(tag, inputs, undefined, { ...caller, onEvent }))
              .finally(ticket.release),
          ),
        )
      } catch (error) {
        // An invalid input fails before the prediction, which otherwise gives up its place.
        ticket.release()
        throw error
      }
    },
  } satisfies Partial<Host>
}
