/**
 * First runs, so that no answer waits for them: a device compiles its shaders at the first run of a
 * shape, and a runtime arranges its memory.
 */
import type { Device } from '../../types/index.ts'
import type { Decoder, Logits, Sequence } from '../decoder.ts'

/** Lengths of a prompt for which the kernels on GPUs differ, behind the chunk's: many rows, few, one. */
const SHADER_LENGTHS = [20, 3, 1]

/**
 * Runs each shape once, with a token behind, and chooses a token as answers do. `check` throws where
 * it is to be given up.
 */
export async function warmUp(
  decoder: Decoder,
  { device, contextWindow }: { device: Device; contextWindow: number },
  check: () => void,
): Promise<void> {
  const sequences: Sequence[] = []
  const choose = async (logits: Logits): Promise<void> => {
    const asks = Array.from({ length: logits.rows }, () => ({ count: 1, temperature: 1 }))
    await logits.top(asks)
    logits.release()
  }
  try {
    for (const length of device === 'webgpu' ? [decoder.chunk, ...SHADER_LENGTHS] : [1]) {
      check()
      const sequence = decoder.open()
      sequences.push(sequence)
      const tokens = Array<number>(Math.max(1, Math.min(length, contextWindow - 2))).fill(0)
      await choose(await sequence.predict(tokens))
    }
    check()
    const entries = sequences.slice(-2).map((sequence) => ({ sequence, token: 0 }))
    if (contextWindow > 1) await choose(await decoder.step(entries.slice(-decoder.batch)))
  } finally {
    for (const sequence of sequences) sequence.close()
  }
}
