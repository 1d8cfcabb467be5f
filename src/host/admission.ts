/**
 * Admission to a queue that is full. No signal tells that a page aborted a request before its headers: the
 * first sign is that the body is canceled when they arrive. So a full queue may hold places that nobody
 * wants, and a request waits until that is known before it is rejected.
 */
import type { Ticket } from './queue.ts'

export interface AdmissionOptions {
  /** Most requests that wait; a further one is rejected at once. */
  most: number
  /** Returns the error of a queue that has no place for that client. */
  findFault(client: string): Error | undefined
  /** Returns the milliseconds until every place is known to be wanted. */
  uncertainty(): number
  enter(client: string, signal: AbortSignal): Ticket
}

export interface Admission {
  admit(client: string, signal: AbortSignal): Promise<Ticket>
  /** Looks again: a place was given up or confirmed. */
  retry(): void
}

/** Milliseconds to wait until it is known; headers follow the admission of a request within a second. */
export const CONFIRM_TIMEOUT_MS = 1_500

export function createAdmission({
  most,
  findFault,
  uncertainty,
  enter,
}: AdmissionOptions): Admission {
  /** Attempts of those who wait, the first first. */
  const attempts = new Set<() => void>()

  function wait(client: string, signal: AbortSignal): Promise<Ticket> {
    const deadline = performance.now() + CONFIRM_TIMEOUT_MS
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined
      const attempt = () => {
        clearTimeout(timer)
        const left = Math.min(uncertainty(), deadline - performance.now())
        if (!findFault(client) || left <= 0 || signal.aborted) return end()
        timer = setTimeout(attempt, left)
      }
      const end = () => {
        attempts.delete(attempt)
        signal.removeEventListener('abort', attempt)
        try {
          resolve(enter(client, signal))
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
      findFault(client) && attempts.size < most ? wait(client, signal) : enter(client, signal),
    retry() {
      for (const attempt of attempts) attempt()
    },
  }
}
