/** Runs a predictor on inputs as clients send them over HTTP, and encodes its outputs for them. */
import { throwInvalidInput } from '../../values/input-errors.ts'
import { shorten } from '../../values/shorten.ts'
import type {
  EventStream,
  PredictionEvent,
  RemotePrediction,
  RemotePredictionEvent,
  RemotePredictionRequest,
  Signature,
} from '../../types/index.ts'
import { MAX_ARRAY_BYTES } from './arrays.ts'
import type { InputBudget } from './conversion.ts'
import { type Dialect, decodeValue, encodeValue } from './values.ts'

/**
 * Resolves with the prediction of `predict`, which runs the predictor on the decoded inputs.
 * Rejects with `invalid_request` that names an unknown or unsupported input. The events throw an
 * error that names an output which cannot be encoded.
 */
export async function runRemotely(
  request: RemotePredictionRequest,
  signature: Signature,
  predict: (inputs: Record<string, unknown>) => Promise<EventStream<PredictionEvent>>,
): Promise<RemotePrediction> {
  const { inputs, dialect } = await decodeInputs(request, signature)
  const { events } = await predict(inputs)
  return { tag: request.tag, events: encodeEvents(events, signature, dialect) }
}

async function decodeInputs(
  { inputs, jsonCount }: RemotePredictionRequest,
  signature: Signature,
): Promise<{ inputs: Record<string, unknown>; dialect: Dialect }> {
  const dialect: Partial<Dialect> = {}
  const budget: InputBudget = { json: { ...jsonCount }, arrayBytes: MAX_ARRAY_BYTES }
  const decoded: Array<[name: string, value: unknown]> = []
  for (const [name, inputValue] of Object.entries(inputs)) {
    const path = `inputs.${shorten(name)}`
    const parameter = signature.inputs.find((each) => each.name === name)
    if (!parameter) {
      const names = signature.inputs.map((each) => each.name).join(', ') || 'none'
      return throwInvalidInput(path, `unknown input. Expected: ${names}.`)
    }
    const { value, numbers, key } = await decodeValue(inputValue, parameter, path, budget)
    dialect.numbers ??= numbers
    dialect.key ??= key
    decoded.push([name, value])
  }
  const key = dialect.key ?? 'dtype'
  const numbers = dialect.numbers ?? (key === 'type' ? 'bytes' : 'npz')
  return { inputs: Object.fromEntries(decoded), dialect: { key, numbers } }
}

/** Yields the events with the outputs in the order of the signature, by which clients name them. */
async function* encodeEvents(
  events: AsyncIterable<PredictionEvent>,
  signature: Signature,
  dialect: Dialect,
): AsyncGenerator<RemotePredictionEvent> {
  for await (const event of events) {
    if (event.type !== 'finish') {
      yield event
      continue
    }
    const { outputs, latency } = event.result
    const results = signature.outputs.map((parameter) =>
      encodeValue(outputs[parameter.name], parameter, dialect, `outputs.${parameter.name}`),
    )
    yield { type: 'finish', results, latency }
  }
}
