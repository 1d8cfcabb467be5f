import type * as v from 'valibot'
import type { Prediction, PredictionRequest, Predictor } from '../types/index.ts'
import { filled, object, optional } from './fields.ts'

/** `POST /v1/predictions`: its table of fields. */
export const predictionBody = object({
  tag: filled,
  clientId: filled,
  configurationId: optional(filled),
  deviceId: optional(filled),
  predictionId: optional(filled),
})

export function predictionRequest(body: v.InferOutput<typeof predictionBody>): PredictionRequest {
  return {
    tag: body.tag,
    clientId: body.clientId,
    configurationId: body.configurationId ?? undefined,
    deviceId: body.deviceId ?? undefined,
    predictionId: body.predictionId ?? undefined,
  }
}

// Both are spelled out, so that nothing a host knows beyond them goes out.

export function predictionObject({
  id,
  tag,
  configuration,
  resources,
  created,
}: Prediction): Prediction {
  return {
    id,
    tag,
    configuration,
    resources: resources.map(({ type, url, name }) => ({ type, url, name })),
    created,
  }
}

export function predictorObject(predictor: Predictor): Predictor {
  const { tag, owner, name, description, card, status, access, signature } = predictor
  const { username, created } = owner
  return { tag, owner: { username, created }, name, description, card, status, access, signature }
}
