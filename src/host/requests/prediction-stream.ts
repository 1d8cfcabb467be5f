/** Turns a prediction into a stream of events, for requests over HTTP. */
import { imagesToFiles } from '../../predictor/png.ts'
import type {
  EventStream,
  LoadProgress,
  PredictionEvent,
  PredictionResult,
} from '../../types/index.ts'
import { withTimeout } from '../../values/promises.ts'
import { LatestValue } from '../models/event-hub.ts'

/**
 * Resolves when `run` resolves, or after 5 s. Rejects if `run` rejects before that; the events
 * throw later errors.
 */
export async function streamPrediction(
  run: (onProgress: (progress: LoadProgress) => void) => Promise<PredictionResult>,
): Promise<EventStream<PredictionEvent>> {
  const latest = new LatestValue<LoadProgress | undefined>(undefined)
  const running = run((progress) => latest.set(progress))
    .then(withFiles)
    .finally(() => latest.complete())
  await untilStatus(running)
  return { events: events() }

  async function* events(): AsyncGenerator<PredictionEvent> {
    for await (const progress of latest.read(new AbortController().signal)) {
      if (progress) yield { type: 'progress', progress }
    }
    yield { type: 'finish', result: await running }
  }
}

async function withFiles(result: PredictionResult): Promise<PredictionResult> {
  return { ...result, outputs: await imagesToFiles(result.outputs) }
}

/** Time in milliseconds after which a request gets status 200, whatever its outcome will be. */
const STATUS_TIMEOUT_MS = 5_000

/**
 * Resolves when the request is accepted, or after 5 s. Rejects if the request fails before that.
 * Later errors are for the reader of its events, so they are no unhandled rejections.
 */
export async function untilStatus(accepted: Promise<unknown>): Promise<void> {
  await withTimeout(STATUS_TIMEOUT_MS, accepted, undefined)
}
