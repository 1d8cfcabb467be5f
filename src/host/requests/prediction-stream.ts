/** Turns a prediction into a stream of events, for requests over HTTP. */
import { imagesToFiles } from '../../predictor/png.ts'
import type {
  AcceptedEvent,
  EventStream,
  LoadProgress,
  PredictionEvent,
  PredictionResult,
  PredictionStep,
} from '../../types/index.ts'
import { LatestValue } from '../models/event-hub.ts'

/** Runs a prediction. Its progress is followed by its result, with which it is accepted. */
export async function streamPrediction(
  run: (onStep: (step: PredictionStep) => void) => Promise<PredictionResult>,
): Promise<EventStream<AcceptedEvent | PredictionEvent>> {
  const latest = new LatestValue<LoadProgress | undefined>(undefined)
  const running = run((step) => {
    if ('phase' in step) latest.set(step)
  })
    .then(withFiles)
    .finally(() => latest.complete())
  // The reader of the events gets the error.
  running.catch(() => undefined)
  return { events: events() }

  async function* events(): AsyncGenerator<AcceptedEvent | PredictionEvent> {
    for await (const progress of latest.read(new AbortController().signal)) {
      if (progress) yield { type: 'progress', progress }
    }
    const result = await running
    yield { type: 'accepted', ignored: [] }
    yield { type: 'finish', result }
  }
}

async function withFiles(result: PredictionResult): Promise<PredictionResult> {
  return { ...result, outputs: await imagesToFiles(result.outputs) }
}
