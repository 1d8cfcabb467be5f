/**
 * Codec of `POST /v1/predictions/remote`, by which predictor clients run a predictor over HTTP.
 * Inputs and outputs have the form `{ data, dtype }`, where `data` is a data URL.
 */
import type * as v from 'valibot'
import type { InoriginError } from '../error.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { PredictionEvent, Signature, Tag } from '../types/index.ts'
import { type Encoder, progressText } from './answer.ts'
import { anyObject, filled, flag, object, optional, string } from './fields.ts'
import { id } from './id.ts'
import { type Dialect, decodeValue, encodeValue, type RemoteValue } from './remote-values.ts'
import { JSON_TYPE, SSE_TYPE } from './reply.ts'
import { comment, frame } from './sse.ts'

/** Schema of the body. `clientId` has no effect and is reported like an unknown field. */
export const remoteBody = object({
  tag: filled,
  inputs: optional(anyObject),
  acceleration: optional(string),
  stream: optional(flag),
})

type RemoteBody = v.InferOutput<typeof remoteBody>

/** Returns the fields without effect: the server itself chooses the device. */
export function ignoredByRemote({ acceleration }: RemoteBody): string[] {
  const isAny = (acceleration ?? '') === '' || /^((local|remote)_)?auto$/.test(acceleration ?? '')
  return isAny ? [] : ['acceleration']
}

/** Decoded inputs of a predictor, and the dialect of the client. */
export interface Remote {
  inputs: Record<string, unknown>
  dialect: Dialect
}

/** Decodes the inputs. Throws `invalid_request` that names an unknown or unsupported input. */
export function remoteInputs({ inputs }: RemoteBody, signature: Signature): Remote {
  const dialect: Partial<Dialect> = {}
  const decoded = Object.entries(inputs ?? {}).map(([name, given]) => {
    const path = `inputs.${name}`
    const parameter = signature.inputs.find((each) => each.name === name)
    if (!parameter) {
      const names = signature.inputs.map((each) => each.name).join(', ') || 'none'
      return throwInvalidInput(path, `unknown input. Expected: ${names}.`)
    }
    const { value, numbers, key } = decodeValue(given, parameter, path)
    dialect.numbers ??= numbers
    dialect.key ??= key
    return [name, value] as const
  })
  const key = dialect.key ?? 'dtype'
  const numbers = dialect.numbers ?? (key === 'type' ? 'bytes' : 'npz')
  return { inputs: Object.fromEntries(decoded), dialect: { key, numbers } }
}

interface Told {
  tag: Tag
  signature: Signature
  dialect: Dialect
}

/** Encodes a prediction as one JSON body, with spaces as heartbeats, or as a one-event stream. */
export function remoteEncoder(told: Told, stream: boolean): Encoder<PredictionEvent> {
  const head = { id: id('pred_'), tag: told.tag, created: new Date().toISOString() }
  const prediction = (
    results: readonly RemoteValue[] | null,
    latency: number | null,
    error: string | null,
  ): string => {
    const whole = { ...head, results, latency, error, logs: null }
    return stream ? frame(whole, 'prediction') : JSON.stringify(whole)
  }
  return {
    type: stream ? SSE_TYPE : JSON_TYPE,
    encode(event) {
      if (event.type === 'finish') {
        const { outputs, latency } = event.result
        return prediction(resultsOf(outputs, told), latency, null)
      }
      if (!stream) return ' '
      return comment(event.type === 'progress' ? progressText(event.progress) : 'heartbeat')
    },
    // The status has been sent by now, and clients read the error from this field.
    fail: (error: InoriginError) => prediction(null, null, error.message),
  }
}

/** Encodes the outputs in the order of the signature, by which clients name them. */
function resultsOf(outputs: Record<string, unknown>, { signature, dialect }: Told): RemoteValue[] {
  return signature.outputs.map((parameter) =>
    encodeValue(outputs[parameter.name], parameter, dialect, `outputs.${parameter.name}`),
  )
}
