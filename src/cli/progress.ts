/** Shows progress on stderr: one updated line on a terminal, or a line from time to time. */

import { print, printOver } from './output.ts'

/** Milliseconds between two lines without a terminal. */
const LINE_INTERVAL_MS = 5_000

export interface Progress {
  step(what: string, done?: number, total?: number): void
  /** Clears the progress line. */
  end(): void
}

export function createProgress(stream: NodeJS.WriteStream): Progress {
  const isTerminal = stream.isTTY
  let last = performance.now()
  let shown = ''
  const show = (text: string): void => {
    if (text === shown) return
    shown = text
    if (isTerminal) printOver(stream, text)
    else print(stream, [text])
  }
  return {
    step(what, done, total) {
      const text =
        done === undefined || !total ? `${what} ...` : `${what}: ${formatShare(done, total)}`
      const now = performance.now()
      if (!isTerminal && now - last < LINE_INTERVAL_MS) return
      last = now
      show(text)
    },
    end() {
      if (isTerminal && shown) printOver(stream, '')
    },
  }
}

function formatShare(done: number, total: number): string {
  return `${Math.floor((100 * done) / total)} % of ${formatByteCount(total)}`
}

/** Formats a length as MB, kB or bytes, such as `1.5 MB`. */
export function formatByteCount(bytes: number): string {
  if (bytes < 1e3) return `${bytes} bytes`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}
