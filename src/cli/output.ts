/** Prints all output of the command, with control characters escaped to protect the terminal. */

/** Control characters (C0, DEL, C1), line separators, and characters that change text direction. */
// oxlint-disable-next-line no-control-regex -- They are what is looked for.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Escape sequence that moves to the start of the line and clears it. */
const CLEAR_LINE = '\r\u001b[K'

/** Returns the text with every control character escaped, such as `\u001b`. */
export const escapeControls = (text: string): string =>
  text.replaceAll(CONTROLS, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Writes lines. A line break inside a line is escaped as well. */
export function print(stream: NodeJS.WritableStream, lines: readonly string[]): void {
  stream.write(lines.map((line) => `${escapeControls(line)}\n`).join(''))
}

export function printLines(...lines: readonly string[]): number {
  print(process.stdout, lines)
  return 0
}

export function printOver(stream: NodeJS.WritableStream, line: string): void {
  stream.write(CLEAR_LINE + escapeControls(line))
}

const LINE_INTERVAL_MS = 5_000

/** Prints what happens: over the same line on a terminal, and otherwise in a line at intervals. */
export function createProgress(stream: NodeJS.WriteStream) {
  let last = performance.now()
  let shown = ''
  return {
    step(what: string, done?: number, total?: number): void {
      const now = performance.now()
      if (!stream.isTTY && now - last < LINE_INTERVAL_MS) return
      last = now
      const share =
        done === undefined || !total
          ? ' ...'
          : `: ${Math.floor((100 * done) / total)} % of ${formatByteCount(total)}`
      if (what + share === shown) return
      shown = what + share
      if (stream.isTTY) printOver(stream, shown)
      else print(stream, [shown])
    },
    end(): void {
      if (stream.isTTY && shown) printOver(stream, '')
    },
  }
}

/** Formats a length as MB, kB or bytes, such as `1.5 MB`. */
export function formatByteCount(bytes: number): string {
  if (bytes < 1e3) return `${bytes} bytes`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}
