/**
 * Warms a decoder up so that the first request does not wait. A device compiles shaders at the
 * first run of each shape, and a runtime allocates memory.
 */
import type { Device } from '../../types/index.ts'
import type { Decoder, Logits, Sequence } from '../decoder.ts'

/** Prompt lengths that use other GPU kernels than a full chunk: many rows, few rows, one row. */
const SHADER_LENGTHS = [20, 3, 1]

/**
 * Runs a prefill of each length and one decode step, and selects candidates as the sampler does.
 * `assertNotAborted` is called before each run and may throw to stop the warm-up.
 */
export async function warmUp(
  decoder: Decoder,
  { device, contextWindow }: { device: Device; contextWindow: number },
  assertNotAborted: () => void,
): Promise<void> {
  const sequences: Sequence[] = []
  const selectCandidates = async (logits: Logits): Promise<void> => {
    const asks = Array.from({ length: logits.rows }, () => ({ count: 1, temperature: 1 }))
    await logits.top(asks)
    logits.release()
  }
  try {
    for (const length of device === 'webgpu' ? [decoder.maxChunkTokens, ...SHADER_LENGTHS] : [1]) {
      assertNotAborted()
      const sequence = decoder.open()
      sequences.push(sequence)
      const tokens = Array<number>(Math.max(1, Math.min(length, contextWindow - 2))).fill(0)
      await selectCandidates(await sequence.forward(tokens))
    }
    assertNotAborted()
    const entries = sequences.slice(-2).map((sequence) => ({ sequence, token: 0 }))
    if (contextWindow > 1)
      await selectCandidates(await decoder.step(entries.slice(-decoder.maxBatchSize)))
  } finally {
    for (const sequence of sequences) sequence.close()
  }
}
