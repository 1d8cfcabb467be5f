/**
 * Admission to a full queue. No signal reports that a page aborted a request before its headers
 * arrived. The first sign is the cancellation of the body after that. So a full queue may hold
 * aborted requests, and a new request waits until these are known before it is rejected.
 */
import type { Ticket } from './queue.ts'

export interface AdmissionOptions {
  /** Maximum number of requests that wait for admission. Further ones are rejected at once. */
  most: number
  /** Returns an error if the queue has no place for the client. */
  findFault(client: string): Error | undefined
  /** Returns the time in milliseconds until no request can turn out to be aborted any more. */
  uncertainty(): number
  enter(client: string, signal: AbortSignal): Ticket
}

export interface Admission {
  admit(client: string, signal: AbortSignal): Promise<Ticket>
  /** Retries the waiting requests, after a request left the queue or was confirmed. */
  retry(): void
}

/**
 * Longest wait for the confirmations, in milliseconds. Headers follow the admission of a request
 * within a second.
 */
export const CONFIRM_TIMEOUT_MS = 1_500

export function createAdmission({
  most,
  findFault,
  uncertainty,
  enter,
}: AdmissionOptions): Admission {
  /** Attempts of the waiting requests, in the order of their arrival. */
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
