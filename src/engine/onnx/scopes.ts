/** Collects errors that WebGPU reports apart from the calls that caused them. */

const KINDS = ['validation', 'internal', 'out-of-memory'] as const

/**
 * Opens error scopes on the device. The returned function closes them and resolves with the first
 * error, or `null`. Nested scopes must be closed in reverse order.
 */
export function openScopes(gpu: GPUDevice): () => Promise<GPUError | null> {
  for (const kind of KINDS) gpu.pushErrorScope(kind)
  return async () => {
    // A lost device reports no scope errors.
    const errors = await Promise.all(KINDS.map(() => gpu.popErrorScope().catch(() => null)))
    return errors.find((error) => error !== null) ?? null
  }
}
