/**
 * Admission to a full queue. No signal reports that a page aborted a request before its headers
 * arrived. The first sign is the cancellation of the body after that. So a full queue may hold
 * aborted requests, and a new request waits until these are known before it is rejected.
 */
export interface Ticket {
  /** Promise that resolves when the request may run, and rejects if its signal aborts before. */
  granted: Promise<void>
  /** Confirms that the client reads the response and has not aborted the request. */
  confirm(): void
  /** Frees the place of the request, whether it waits or runs. */
  release(): void
}

export interface AdmissionOptions {
  /** Maximum number of requests that wait for admission. Further ones are rejected at once. */
  maxWaiting: number
  /** Returns an error if the queue has no place for the client. */
  findRejection(client: string): Error | undefined
  /** Returns the time in milliseconds until no request can turn out to be aborted any more. */
  getUncertaintyMs(): number
  enqueue(client: string, signal: AbortSignal): Ticket
}

export interface Admission {
  admit(client: string, signal: AbortSignal): Promise<Ticket>
  /** Retries the waiting requests, after a request was released or confirmed. */
  retry(): void
}

/**
 * Longest wait for the confirmations, in milliseconds. Headers follow the admission of a request
 * within a second.
 */
export const CONFIRM_TIMEOUT_MS = 1_500

export function createAdmission({
  maxWaiting,
  findRejection,
  getUncertaintyMs,
  enqueue,
}: AdmissionOptions): Admission {
  /** Attempts of the waiting requests, in the order of their arrival. */
  const attempts = new Set<() => void>()

  function waitForPlace(client: string, signal: AbortSignal): Promise<Ticket> {
    const deadline = performance.now() + CONFIRM_TIMEOUT_MS
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined
      const attempt = () => {
        clearTimeout(timer)
        const leftMs = Math.min(getUncertaintyMs(), deadline - performance.now())
        if (!findRejection(client) || leftMs <= 0 || signal.aborted) return settle()
        timer = setTimeout(attempt, leftMs)
      }
      const settle = () => {
        attempts.delete(attempt)
        signal.removeEventListener('abort', attempt)
        try {
          resolve(enqueue(client, signal))
        } catch (error) {
          reject(error)
        }
      }
      attempts.add(attempt)
      signal.addEventListener('abort', attempt)
      attempt()
    })
  }

  return {
    admit: async (client, signal) =>
      findRejection(client) && attempts.size < maxWaiting
        ? waitForPlace(client, signal)
        : enqueue(client, signal),
    retry() {
      for (const attempt of attempts) attempt()
    },
  }
}
