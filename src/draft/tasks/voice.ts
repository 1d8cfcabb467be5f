/** Drafts voices of VITS, which read letters, as MMS does. */
import type { Device } from '../../types/index.ts'
import type { OnnxModel } from '../model.ts'
import { refuse } from '../refuse.ts'
import type { KeepTensor } from '../signature.ts'
import { architectureOf, positive, type TaskFiles } from './files.ts'
import type { TaskDraft } from './task-draft.ts'

/** Maximum number of tokens of a text, since its memory grows with their square. */
const MAX_VOICE_TOKENS = 4_096

const TEXT = 'text'
const AUDIO = 'audio'

/** Tensors of a voice, and its samples per second. */
interface VoicePorts {
  /** Tensor of the tokens. */
  tokens: string
  /** Tensor of the samples. */
  samples: string
  text: Pick<
    NonNullable<TaskDraft['bindings'][string]['text']>,
    'tokenizer' | 'mask' | 'lengths' | 'dictionary'
  >
  rate: number
}

/** Returns the draft of a voice with one text as input and its sound as output. */
export function createVoice({ tokens, samples, text, rate }: VoicePorts) {
  return {
    signature: {
      inputs: [{ name: TEXT, type: 'string', description: 'A text to speak.' }],
      outputs: [
        {
          name: AUDIO,
          type: 'float32',
          description: `Samples from -1 to 1, ${rate} of them per second.`,
        },
      ],
    },
    bindings: {
      // A batch would fill up shorter texts with noise.
      [TEXT]: { tensor: tokens, shape: [1, null], text: { ...text, most: MAX_VOICE_TOKENS } },
      [AUDIO]: { tensor: samples },
    },
    speech: { input: TEXT, output: AUDIO, rate },
  } satisfies Omit<TaskDraft, 'notes'>
}

/**
 * Throws `invalid_request` unless a voice may run on the CPU. Its sound has noise, so that of a GPU cannot
 * be compared with it.
 */
export function assertRunsOnCpu(devices: readonly Device[]): void {
  if (devices.includes('wasm')) return
  throw refuse('--device webgpu: voices run on WASM only.', 'Leave it out.')
}

/**
 * Returns the draft of a voice that reads letters; `null` if the graph is none, or if its tokens stay a
 * tensor. Throws `invalid_request` if it reads something else.
 */
export function draftVoice(
  { inputs, outputs }: OnnxModel,
  { config, tokenizer, vocabulary }: TaskFiles,
  { tensors }: KeepTensor,
): TaskDraft | null {
  const has = (list: OnnxModel['inputs'], name: string) => list.some((one) => one.name === name)
  const isVoice = has(inputs, 'input_ids') && has(outputs, 'waveform') && tensors.size === 0
  if (architectureOf(config) !== 'VitsModel' || !isVoice) return null
  if (Object.keys(vocabulary).length === 0)
    throw refuse(
      'The voice reads letters, but there is no vocab.json.',
      'Copy it from the original.',
    )
  if (tokenizer['is_uroman'] === true)
    throw refuse(
      'The voice reads letters that uroman makes of a text (is_uroman), which is not supported.',
      'Use a voice of a language in its own letters.',
    )
  if (tokenizer['phonemize'] !== false)
    throw refuse(
      'The voice reads phonemes that espeak-ng makes of a text (phonemize), which is not supported.',
      'Use a voice that reads letters, such as one of MMS, or one of Piper.',
    )
  const { speaking_rate: speed = 1 } = config
  return {
    ...createVoice({
      tokens: 'input_ids',
      samples: 'waveform',
      text: {
        tokenizer: 'vocab.json',
        ...(has(inputs, 'attention_mask') && { mask: 'attention_mask' }),
      },
      rate: positive(config['sampling_rate']) ?? 16_000,
    }),
    notes: [`Its speed is fixed in the graph (speaking_rate ${String(speed)}).`],
  }
}
