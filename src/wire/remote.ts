/**
 * Codec of `POST /v1/predictions/remote`, by which predictor clients run a predictor over HTTP.
 * Inputs and outputs have the form `{ data, dtype }`, where `data` is a data URL. The host decodes
 * and encodes these values, because large ones would block the service worker.
 */
import type * as v from 'valibot'
import type { InoriginError } from '../error.ts'
import type { JsonCount } from '../values/json.ts'
import type {
  RemotePredictionEvent,
  RemotePredictionRequest,
  RemoteValue,
  Tag,
} from '../types/index.ts'
import { anyObject, flag, object, optional, string, tagString } from './fields.ts'
import { JSON_TYPE, SSE_TYPE } from './http-response.ts'
import { id } from './id.ts'
import { encodeStatus, type EventEncoder } from './response-body.ts'
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

/** Converts the body to a request. */
export function toRemotePredictionRequest(
  { tag, inputs }: RemoteBody,
  jsonCount: JsonCount,
): RemotePredictionRequest {
  return { tag, inputs: inputs ?? {}, jsonCount }
}

/** Encodes a prediction as one JSON body, with spaces as heartbeats, or as a one-event stream. */
export function remoteEncoder(tag: Tag, stream: boolean): EventEncoder<RemotePredictionEvent> {
  const head = { id: id('pred_'), tag, created: new Date().toISOString() }
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
      if (event.type === 'finish') return prediction(event.results, event.latency, null)
      if (!stream) return ' '
      return encodeStatus(event)
    },
    // The status has been sent by now, and clients read the error from this field.
    fail: (error: InoriginError) => prediction(null, null, error.message),
  }
}
