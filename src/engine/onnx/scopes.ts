/** Errors that WebGPU reports beside the calls that caused them. */

const KINDS = ['validation', 'internal', 'out-of-memory'] as const

/**
 * Listens to the errors of what is asked of the device from here on. The result ends that, and gives
 * the first of them once the device has told; scopes are closed in the reverse of their order.
 */
export function openScopes(gpu: GPUDevice): () => Promise<GPUError | null> {
  for (const kind of KINDS) gpu.pushErrorScope(kind)
  return async () => {
    // A device that is lost has no errors to tell.
    const errors = await Promise.all(KINDS.map(() => gpu.popErrorScope().catch(() => null)))
    return errors.find((error) => error !== null) ?? null
  }
}
