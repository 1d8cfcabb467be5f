/** Drafts the conversion of sound as `preprocessor_config.json` says. */
import type { AudioLayout } from '../../catalog/schema.ts'
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
  const fbank = isSamples(value) ? undefined : toFbank(preprocessor)
  if (!isSamples(value) && !fbank) {
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
    audio: fbank ? { rate: toRate(preprocessor), fbank } : toAudio(preprocessor),
  }
  return { ...draft, signature, bindings: { ...draft.bindings, [value.name]: binding } }
}

const toRate = ({ sampling_rate: rate }: Config): number => positive(rate) ?? DEFAULT_RATE

const toAudio = (preprocessor: Config): AudioLayout => ({
  rate: toRate(preprocessor),
  ...(preprocessor['do_normalize'] === true && { normalize: true }),
})

/** Numbers of the spectrogram of AST that its file leaves out if they are these. */
const AST = { bins: 128, frames: 1024, mean: -4.2677393, std: 4.5689974 }

/** Returns the spectrogram of a processor; `undefined` for one that is not computed. */
function toFbank(preprocessor: Config): AudioLayout['fbank'] {
  if (preprocessor['feature_extractor_type'] !== 'ASTFeatureExtractor') return undefined
  const { num_mel_bins: bins, max_length: frames, mean, std } = preprocessor
  const size = { bins: positive(bins) ?? AST.bins, frames: positive(frames) ?? AST.frames }
  if (preprocessor['do_normalize'] === false) return size
  const middle = typeof mean === 'number' ? mean : AST.mean
  // Python divides by the deviation twice as large.
  return { ...size, mean: middle, std: 2 * (positive(std) ?? AST.std) }
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
