/** Drafts the conversion of sound as `preprocessor_config.json` says. */
import type { OnnxModel, Value } from '../model.ts'
import type { Draft, KeepTensor } from '../signature.ts'
import { type Config, positive, type TaskFiles } from './files.ts'

/** Samples per second of models that do not say them, which nearly all models of speech take. */
const DEFAULT_RATE = 16_000

/** Returns the draft with an input of samples as sound, if the folder has a processor of sound. */
export function draftSounds(
  draft: Draft,
  { inputs }: OnnxModel,
  { preprocessor }: TaskFiles,
  { tensors }: KeepTensor,
): Draft {
  const value = inputs.find(({ name }) => name === 'input_values')
  const isSound = 'feature_extractor_type' in preprocessor || 'sampling_rate' in preprocessor
  if (!value || !isSound || tensors.has(value.name)) return draft
  if (!isSamples(value)) {
    const note =
      `The input ${value.name} takes a spectrogram, which is not computed from sound yet. ` +
      'Compute it as the processor of the model does, and pass it as a tensor.'
    return { ...draft, notes: [...draft.notes, note] }
  }
  const signature = structuredClone(draft.signature)
  const parameter = signature.inputs.find(({ name }) => name === value.name)
  if (parameter) parameter.description = 'A sound.'
  const binding = {
    tensor: value.name,
    ...draft.bindings[value.name],
    audio: toAudio(preprocessor),
  }
  return { ...draft, signature, bindings: { ...draft.bindings, [value.name]: binding } }
}

function toAudio({ sampling_rate: rate, do_normalize: isNormalized }: Config) {
  const normalize = isNormalized === true && { normalize: true }
  return { rate: positive(rate) ?? DEFAULT_RATE, ...normalize }
}

const SAMPLE_TYPES = ['float32', 'float16', 'float64', 'int16']
const FEATURE_NAME = /feature|mel|bin|freq|frame|channel/i

/**
 * Returns `true` if a tensor can hold samples: one free or fixed length beside a batch and a channel.
 * A spectrogram has two.
 */
export function isSamples({ type, shape }: Value): boolean {
  if (!SAMPLE_TYPES.includes(type)) return false
  if (!shape) return true
  const [, ...rest] = shape.length > 1 ? shape : [1, ...shape]
  const lengths = rest.filter((length) => length !== 1)
  const [first] = lengths
  if (rest.length > 2 || lengths.length > 2) return false
  return lengths.length < 2 || (typeof first !== 'number' && !FEATURE_NAME.test(String(first)))
}
