/** Turns a prediction into a stream of events, for requests over HTTP. */
import { imagesToFiles } from '../../predictor/png.ts'
import type { LoadProgress, PredictionEvent, PredictionResult } from '../../types/index.ts'
import { withHeartbeat } from './heartbeat.ts'
import { untilStatus } from './status-timeout.ts'

/**
 * Resolves when `run` resolves, or after 5 s. Rejects if `run` rejects before that; the events
 * throw later errors. The events include a heartbeat at least every 10 s.
 */
export async function streamPrediction(
  run: (onProgress: (progress: LoadProgress) => void) => Promise<PredictionResult>,
): Promise<AsyncIterable<PredictionEvent>> {
  let latest: LoadProgress | undefined
  let wake = () => {}
  const running = run((progress) => {
    latest = progress
    wake()
  }).then(withFiles)
  await untilStatus(running)
  return withHeartbeat(events())

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
