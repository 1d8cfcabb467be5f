/** Progress on stderr: one line that is written over in a terminal, now and then a line elsewhere. */

import { print, printOver } from './output.ts'

/** Milliseconds between two lines where there is no terminal. */
const PACE = 5_000

export interface Progress {
  step(what: string, done?: number, total?: number): void
  /** Leaves nothing of the line behind. */
  end(): void
}

export function startProgress(stream: NodeJS.WriteStream): Progress {
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
      const text = done === undefined || !total ? `${what} ...` : `${what}: ${shareOf(done, total)}`
      const now = performance.now()
      if (!isTerminal && now - last < PACE) return
      last = now
      show(text)
    },
    end() {
      if (isTerminal && shown) printOver(stream, '')
    },
  }
}

function shareOf(done: number, total: number): string {
  return `${Math.floor((100 * done) / total)} % of ${megabytes(total)}`
}

/** `1.5 MB`; what is smaller than that in kB or bytes. */
export function megabytes(bytes: number): string {
  if (bytes < 1e3) return `${bytes} bytes`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}
