/** Computation that belongs to one request, and the means to cancel it. */
export interface Cancellation {
  /** Signal that is aborted with the request, and when the response is canceled. */
  readonly signal: AbortSignal
  /** Aborts {@link signal}. */
  cancel(): void
  /** The request itself. Node does not abort the signal of a request that was garbage collected. */
  readonly request: Request
}

/** Creates the work of a request that is not yet aborted. */
export function createCancellation(request: Request): Cancellation {
  const controller = new AbortController()
  const { signal } = request
  signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
  return {
    signal: controller.signal,
    cancel: () => controller.abort(new DOMException('The answer was canceled.', 'AbortError')),
    request,
  }
}
