/**
 * Codec of `POST /v1/predictions/remote`, by which predictor clients run a predictor over HTTP.
 * Inputs and outputs have the form `{ data, dtype }`, where `data` is a data URL.
 */
import type * as v from 'valibot'
import type { InoriginError } from '../error.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { PredictionEvent, Signature, Tag } from '../types/index.ts'
import { encodeStatus, type EventEncoder } from './response-body.ts'
import { anyObject, flag, object, optional, string, tagString } from './fields.ts'
import { id } from './id.ts'
import { MAX_ARRAY_BYTES } from './remote-arrays.ts'
import type { InputBudget } from './remote-conversion.ts'
import { type Dialect, decodeValue, encodeValue, type RemoteValue } from './remote-values.ts'
import type { JsonCount } from './json.ts'
import { JSON_TYPE, SSE_TYPE } from './http-response.ts'
import { shorten } from '../values/shorten.ts'
import { frame } from './sse.ts'

/** Schema of the body. `clientId` has no effect and is reported like an unknown field. */
export const remoteBodySchema = object({
  tag: tagString,
  inputs: optional(anyObject),
  acceleration: optional(string),
  stream: optional(flag),
})

type RemoteBody = v.InferOutput<typeof remoteBodySchema>

/** Returns the fields without effect: the server itself chooses the device. */
export function ignoredByRemote({ acceleration }: RemoteBody): string[] {
  const isAny = (acceleration ?? '') === '' || /^((local|remote)_)?auto$/.test(acceleration ?? '')
  return isAny ? [] : ['acceleration']
}

/** Decoded inputs of a predictor, and the dialect of the client. */
export interface DecodedInputs {
  inputs: Record<string, unknown>
  dialect: Dialect
}

/**
 * Decodes the inputs. Rejects with `invalid_request` that names an unknown or unsupported input.
 */
export async function decodeInputs(
  { inputs }: RemoteBody,
  signature: Signature,
  jsonCount: JsonCount,
): Promise<DecodedInputs> {
  const dialect: Partial<Dialect> = {}
  const budget: InputBudget = { json: jsonCount, arrayBytes: MAX_ARRAY_BYTES }
  const decoded: Array<[name: string, value: unknown]> = []
  for (const [name, inputValue] of Object.entries(inputs ?? {})) {
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

interface EncoderContext {
  tag: Tag
  signature: Signature
  dialect: Dialect
}

/** Encodes a prediction as one JSON body, with spaces as heartbeats, or as a one-event stream. */
export function remoteEncoder(
  context: EncoderContext,
  stream: boolean,
): EventEncoder<PredictionEvent> {
  const head = { id: id('pred_'), tag: context.tag, created: new Date().toISOString() }
  const prediction = (
    results: readonly RemoteValue[] | null,
    latency: number | null,
    error: string | null,
  ): string => {
    const predictionJson = { ...head, results, latency, error, logs: null }
    return stream ? frame(predictionJson, 'prediction') : JSON.stringify(predictionJson)
  }
  return {
    type: stream ? SSE_TYPE : JSON_TYPE,
    encode(event) {
      if (event.type === 'finish') {
        const { outputs, latency } = event.result
        return prediction(encodeResults(outputs, context), latency, null)
      }
      if (!stream) return ' '
      return encodeStatus(event)
    },
    // The status has been sent by now, and clients read the error from this field.
    fail: (error: InoriginError) => prediction(null, null, error.message),
  }
}

/** Encodes the outputs in the order of the signature, by which clients name them. */
function encodeResults(
  outputs: Record<string, unknown>,
  { signature, dialect }: EncoderContext,
): RemoteValue[] {
  return signature.outputs.map((parameter) =>
    encodeValue(outputs[parameter.name], parameter, dialect, `outputs.${parameter.name}`),
  )
}
