/** The operations of predictors, over HTTP and for the page's server handle. */
import { toPredictor } from '../../catalog/find-entry.ts'
import { call } from '../../link/ask.ts'
import type { ModelCalls } from '../../link/protocol.ts'
import { closeImages } from '../../predictor/transferable-inputs.ts'
import type { Control, Host } from '../../types/index.ts'
import type { Entries } from '../library/entries.ts'
import { findPredictor } from '../library/find-entry.ts'
import type { Predictions } from '../library/predictions.ts'
import type { Authorize } from './authorization.ts'
import { waitUntilLoaded, type Leases } from './leases.ts'
import { streamPrediction } from './prediction-stream.ts'
import { createQueue } from './queue.ts'
import { withRetry } from './retry.ts'

/** Creates the operations of the page's server handle. */
export function createPredictorControl({
  entries,
  leases,
}: {
  entries: Entries
  leases: Leases
}): Pick<Control, 'describe' | 'predict'> {
  return {
    describe: async (tag) => toPredictor(await findPredictor(entries, tag)),
    async predict(tag, inputs, { configuration, signal, onProgress }) {
      const run = async () => {
        const lease = await leases.acquirePredictor(tag, configuration, signal)
        const { instance, release } = lease
        try {
          await waitUntilLoaded(lease, signal, onProgress)
          return await call<ModelCalls, 'predict'>(instance.link, 'predict', [inputs], { signal })
        } catch (error) {
          throw await instance.explainFailure(error)
        } finally {
          release()
        }
      }
      // The inputs were copied when they crossed the port, so the caller keeps its own.
      return withRetry(run).finally(() => closeImages(inputs))
    },
  }
}

/** Creates the operations over HTTP. They run the predictors of `control`. */
export function createHttpPredictors(
  { authorize, predictions }: { authorize: Authorize; predictions: Predictions },
  control: Pick<Control, 'describe' | 'predict'>,
): Pick<Host, 'predictor' | 'createPrediction' | 'predict'> {
  /** Queue of all predictions. Each also waits for its predictor, which runs one by one. */
  const queue = createQueue({ maxRunning: 32, maxPerClient: 64, maxTotal: 256 })
  return {
    async predictor(tag, caller) {
      authorize(caller)
      return control.describe(tag)
    },
    async createPrediction(request, caller) {
      authorize(caller)
      return predictions.create(request, caller.signal)
    },
    async predict(tag, inputs, caller) {
      authorize(caller)
      const { client = '', signal } = caller
      const ticket = queue.enqueue(client, signal)
      return streamPrediction((onProgress) =>
        ticket.granted
          .then(() => control.predict(tag, inputs, { signal, onProgress }))
          .finally(ticket.release),
      )
    },
  }
}
