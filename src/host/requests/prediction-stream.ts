/** Turns a prediction into a stream of events, for requests over HTTP. */
import { imagesToFiles } from '../../predictor/png.ts'
import type {
  EventStream,
  LoadProgress,
  PredictionEvent,
  PredictionResult,
} from '../../types/index.ts'
import { delay, STATUS_TIMEOUT_MS } from './generation-stream.ts'

/**
 * Resolves when `run` resolves, or after 5 s. Rejects if `run` rejects before that; the events
 * throw later errors.
 */
export async function streamPrediction(
  run: (onProgress: (progress: LoadProgress) => void) => Promise<PredictionResult>,
): Promise<EventStream<PredictionEvent>> {
  let latest: LoadProgress | undefined
  let wake = () => {}
  const running = run((progress) => {
    latest = progress
    wake()
  }).then(withFiles)
  // The reader of the events gets this error.
  running.catch(() => undefined)
  await Promise.race([running, delay(STATUS_TIMEOUT_MS)])
  return { events: events() }

  async function* events(): AsyncGenerator<PredictionEvent> {
    for (;;) {
      const woken = new Promise<void>((resolve) => (wake = resolve))
      const result = await Promise.race([running, woken])
      if (result) return yield { type: 'finish', result }
      if (latest) yield { type: 'progress', progress: latest }
    }
  }
}

async function withFiles(result: PredictionResult): Promise<PredictionResult> {
  return { ...result, outputs: await imagesToFiles(result.outputs) }
}
