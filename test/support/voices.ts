/** Graphs of voices that nobody trained: each token is one sample. */
import { float, toFloats, TOKENS } from './encoder.ts'
import type { Graph, Port } from './onnx.ts'

/** Letters of {@link LETTER_VOICE}. The first one is that of the padding, as MMS has it. */
export const LETTERS = "k abcdefghijlmnopqrstuvwxyz'"

/** Value of the token 1 in a sound. */
export const TOKEN_LEVEL = 0.01

/** `vocab.json` and `tokenizer_config.json` of {@link LETTER_VOICE}. */
export const LETTER_FILES = {
  vocabulary: Object.fromEntries(Array.from(LETTERS, (letter, at) => [letter, at])),
  settings: { tokenizer_class: 'VitsTokenizer', language: 'eng', pad_token: 'k', phonemize: false },
}

/** Voice of VITS as Optimum exports it: the sample of a token is its id. */
export const LETTER_VOICE: Graph = {
  inputs: TOKENS,
  outputs: [{ name: 'waveform', type: 'float32', shape: ['batch', 'samples'] }],
  nodes: [
    { type: 'Mul', inputs: TOKENS.map(({ name }) => name), outputs: ['kept'] },
    toFloats('kept'),
    { type: 'Mul', inputs: ['kept.float', 'level'], outputs: ['waveform'] },
  ],
  weights: [float('level', TOKEN_LEVEL)],
}

const port = (name: string, type: Port['type'], ...shape: (string | number)[]): Port => ({
  name,
  type,
  shape,
})

/** Voice of Piper: the sample of a token is its id times the length scale, more for each speaker. */
export const PHONEME_VOICE: Graph = {
  inputs: [
    port('input', 'int64', 'batch_size', 'phonemes'),
    port('input_lengths', 'int64', 'batch_size'),
    port('scales', 'float32', 3),
    port('sid', 'int64', 'batch_size'),
  ],
  outputs: [port('output', 'float32', 'batch_size', 1, 'time')],
  nodes: [
    ...['input', 'input_lengths', 'sid'].map(toFloats),
    { type: 'Gather', inputs: ['scales', 'one'], outputs: ['length'] },
    { type: 'Mul', inputs: ['input.float', 'length'], outputs: ['long'] },
    { type: 'Add', inputs: ['long', 'input_lengths.float'], outputs: ['counted'] },
    { type: 'Add', inputs: ['counted', 'sid.float'], outputs: ['spoken'] },
    { type: 'Mul', inputs: ['spoken', 'level'], outputs: ['samples'] },
    { type: 'Unsqueeze', inputs: ['samples', 'one'], outputs: ['output'] },
  ],
  weights: [
    float('level', TOKEN_LEVEL),
    { name: 'one', type: 'int64', shape: [1], data: { integers: [1] } },
  ],
}

const SIGNS = "_^$ ,.?!'ˈˌːabdefhiklmnoprstuvwzæðŋɐɑɔəɚɛɜɡɪɹʃʊʌʒθ"

/** Configuration of {@link PHONEME_VOICE}. */
export const PIPER_CONFIG = {
  audio: { sample_rate: 22_050 },
  espeak: { voice: 'en-us' },
  inference: { noise_scale: 0.5, length_scale: 2, noise_w: 0.25 },
  phoneme_type: 'espeak',
  phoneme_id_map: Object.fromEntries(Array.from(SIGNS, (sign, at) => [sign, [at]])),
  num_speakers: 2,
  speaker_id_map: { anna: 0, ben: 1 },
}

/** Returns the tokens that Piper makes of phonemes. */
export function toPiperIds(phonemes: string): number[] {
  const idOf = (sign: string): number => SIGNS.indexOf(sign)
  const body = Array.from(phonemes).flatMap((sign) => [idOf(sign), idOf('_')])
  return [idOf('^'), idOf('_'), ...body, idOf('$')]
}
