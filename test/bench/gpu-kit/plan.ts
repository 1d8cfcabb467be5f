/** What a run of the kit measures. */
import type { Format, ShapeName } from '../models/shapes.ts'
import type { Opening, SideName } from '../side.ts'

/**
 * The adapter that sides run on: the GPU with half precision, the GPU as users have it, or one made of
 * software. Chromium offers `shader-f16` on NVIDIA's driver for Linux only with a flag.
 */
export type AdapterName = 'f16' | 'plain' | 'swiftshader'

export const ADAPTER_NAMES: readonly AdapterName[] = ['f16', 'plain', 'swiftshader']

/** A side with a model. */
export interface Entry {
  side: SideName
  model: ShapeName
  format: Format
  /** `false` to measure without drafts, which only inorigin has. Default: with them. */
  drafts?: false
  /** Default: `webgpu`. */
  device?: Opening['device']
}

/** How much is measured of each entry. */
export interface Effort {
  /** Tokens of the prompts before measured answers. */
  contexts: readonly number[]
  /** Tokens of a measured answer. */
  answer: number
  /** Answers after prompts of each length. Their medians are reported. */
  rounds: number
  /** Tokens of the first turn of a conversation, to which the second one adds {@link MORE}. */
  history: number
  /** Threads of what a side computes on the CPU. */
  threads: number
}

/** Largest number of threads of what a side computes on the CPU. */
export const MAX_THREADS = 4
/** Tokens that a second turn adds. */
export const MORE = 24
/** Answers that run at once. */
export const STREAMS = 4
/** Tokens of their prompts, which are short so that what is compared is the writing. */
export const STREAM_PROMPT = 16

export const FULL: Omit<Effort, 'threads'> = {
  contexts: [64, 2_048],
  answer: 64,
  rounds: 3,
  history: 1_000,
}
/** For adapters made of software, and to try a kit. */
export const TINY: Omit<Effort, 'threads'> = {
  contexts: [8, 32],
  answer: 6,
  rounds: 1,
  history: 40,
}

/** Returns the entries for these shapes and sides. */
export function listEntries(
  adapter: AdapterName,
  models: readonly ShapeName[],
  sides: readonly SideName[],
): Entry[] {
  const half = adapter === 'f16'
  const onnx = adapter === 'swiftshader' ? 'fp32' : half ? 'q4f16' : 'q4'
  const formats: Readonly<Record<SideName, Format>> = {
    inorigin: onnx,
    transformers: onnx,
    webllm: half ? 'q4f16_1' : 'q4f32_1',
    wllama: 'q4_0',
  }
  return models.flatMap((model) =>
    sides.flatMap((side): Entry[] => {
      const entry = { side, model, format: formats[side] }
      if (side === 'inorigin') return [entry, { ...entry, drafts: false }]
      // It computes on no adapter of software.
      return side === 'wllama' && adapter === 'swiftshader'
        ? [{ ...entry, device: 'wasm' }]
        : [entry]
    }),
  )
}

/** Returns the name of the side in a table. */
export const nameOf = ({ side, drafts, device }: Entry): string =>
  `${side}${drafts === false ? ' without drafts' : ''}${device === 'wasm' ? ' on WASM' : ''}`
