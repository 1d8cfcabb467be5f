/** Handles interrupts of the command by a terminal or another process. */

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Keeps the first interrupt of each kind from ending the process, and returns a signal that it
 * aborts. The caller removes partial files. A second interrupt ends the process.
 */
export function deferInterrupts(): AbortSignal {
  const interrupted = new AbortController()
  for (const name of SIGNALS) process.once(name, () => interrupted.abort())
  return interrupted.signal
}
