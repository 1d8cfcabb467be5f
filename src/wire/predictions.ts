import type * as v from 'valibot'
import type { Prediction, PredictionRequest, Predictor } from '../types/index.ts'
import { nonEmptyString, object, optional, tagString } from './fields.ts'

/** Schema of `POST /v1/predictions`. */
export const predictionBodySchema = object({
  tag: tagString,
  clientId: nonEmptyString,
  configurationId: optional(nonEmptyString),
  deviceId: optional(nonEmptyString),
  predictionId: optional(nonEmptyString),
})

/** Converts the body to a request. */
export function toPredictionRequest(
  body: v.InferOutput<typeof predictionBodySchema>,
): PredictionRequest {
  return {
    tag: body.tag,
    clientId: body.clientId,
    configurationId: body.configurationId ?? undefined,
    deviceId: body.deviceId ?? undefined,
    predictionId: body.predictionId ?? undefined,
  }
}

// The next two functions list every field, so that other fields of the host are never sent.

/** Returns a prediction as it is sent. */
export function toPredictionJson({
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

/** Returns a predictor as it is sent. */
export function toPredictorJson(predictor: Predictor): Predictor {
  const { tag, owner, name, description, card, status, access, signature } = predictor
  const { username, created } = owner
  return { tag, owner: { username, created }, name, description, card, status, access, signature }
}
