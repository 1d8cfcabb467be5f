import type * as v from 'valibot'
import type { InoriginError } from '../error.ts'
import type {
  Prediction,
  PredictionRequest,
  Predictor,
  RemotePredictionEvent,
  RemoteValue,
  Tag,
} from '../types/index.ts'
import * as f from './fields.ts'
import { createId, frame, JSON_TYPE, SSE_TYPE } from './http.ts'
import { encodeStatus, type EventEncoder } from './response-body.ts'

/** Schema of `POST /v1/predictions`. */
export const predictionBodySchema = f.object({
  tag: f.tagString,
  clientId: f.nonEmptyString,
  configurationId: f.optional(f.nonEmptyString),
  deviceId: f.optional(f.nonEmptyString),
  predictionId: f.optional(f.nonEmptyString),
})

/** Converts the body to a request, in which no field is `null`. */
export function toPredictionRequest(body: v.InferOutput<typeof predictionBodySchema>) {
  const sent = Object.entries(body).filter(([, value]) => value !== null)
  return Object.fromEntries(sent) as unknown as PredictionRequest
}

// The next two functions list every field, so that other fields of the host are never sent.

/** Returns a prediction as it is sent. */
export function toPredictionJson(prediction: Prediction): Prediction {
  const { id, tag, configuration, created } = prediction
  const resources = prediction.resources.map(({ type, url, name }) => ({ type, url, name }))
  return { id, tag, configuration, resources, created }
}

/** Returns a predictor as it is sent. */
export function toPredictorJson(predictor: Predictor): Predictor {
  const { tag, owner, name, description, card, status, access, signature } = predictor
  const { username, created } = owner
  return { tag, owner: { username, created }, name, description, card, status, access, signature }
}

/**
 * Schema of `POST /v1/predictions/remote`, by which predictor clients run a predictor over HTTP. The
 * host decodes and encodes the values, because large ones would block the service worker. `clientId`
 * has no effect and is reported like an unknown field.
 */
export const remoteBodySchema = f.object({
  tag: f.tagString,
  inputs: f.optional(f.anyObject),
  acceleration: f.optional(f.string),
  stream: f.optional(f.flag),
})

/** Returns the fields without effect: the server itself chooses the device. */
export const ignoredByRemote = ({ acceleration }: v.InferOutput<typeof remoteBodySchema>) =>
  /^(((local|remote)_)?auto)?$/.test(acceleration ?? '') ? [] : ['acceleration']

/** Encodes a prediction as one JSON body, with spaces as heartbeats, or as a one-event stream. */
export function remoteEncoder(tag: Tag, stream: boolean): EventEncoder<RemotePredictionEvent> {
  const head = { id: createId('pred_'), tag, created: new Date().toISOString() }
  const prediction = (
    results: readonly RemoteValue[] | null,
    latency: number | null,
    error: string | null,
  ) => {
    const predictionJson = { ...head, results, latency, error, logs: null }
    return stream ? frame(predictionJson, 'prediction') : JSON.stringify(predictionJson)
  }
  return {
    type: stream ? SSE_TYPE : JSON_TYPE,
    encode(event) {
      if (event.type === 'finish') return prediction(event.results, event.latency, null)
      return stream ? encodeStatus(event) : ' '
    },
    // The status has been sent by now, and clients read the error from this field.
    fail: (error: InoriginError) => prediction(null, null, error.message),
  }
}
