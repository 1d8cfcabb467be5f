/** Turns a prediction into a stream of events, for requests over HTTP. */
import { imagesToFiles } from '../../predictor/png.ts'
import type {
  EventStream,
  LoadProgress,
  PredictionEvent,
  PredictionResult,
} from '../../types/index.ts'
import { createLatestValue } from '../models/latest-value.ts'
import { untilStatus } from './status-timeout.ts'

/**
 * Resolves when `run` resolves, or after 5 s. Rejects if `run` rejects before that; the events
 * throw later errors.
 */
export async function streamPrediction(
  run: (onProgress: (progress: LoadProgress) => void) => Promise<PredictionResult>,
): Promise<EventStream<PredictionEvent>> {
  const latest = createLatestValue<LoadProgress | undefined>(undefined)
  const running = run(latest.set).then(withFiles).finally(latest.complete)
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
