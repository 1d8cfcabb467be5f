/** What a request set going, and how it ends. */
export interface Work {
  /** Aborted with the request, and when the answer is cancelled. */
  readonly signal: AbortSignal
  cancel(): void
  /** Held as long as the answer: Node forgets to abort a request that no one holds. */
  readonly request: Request
}

/** The work of a request that is not yet aborted. */
export function workOf(request: Request): Work {
  const controller = new AbortController()
  const { signal } = request
  signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
  return {
    signal: controller.signal,
    cancel: () => controller.abort(new DOMException('The answer was cancelled.', 'AbortError')),
    request,
  }
}
