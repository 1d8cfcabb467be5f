/** The one place where output of the command leaves: names in it take no control of the terminal. */

/** Control characters (C0, DEL, C1), ends of lines, and signs that change the direction of a text. */
// oxlint-disable-next-line no-control-regex -- They are what is looked for.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Moves a terminal to the start of its line and clears the line. */
const CLEAR_LINE = '\r\u001b[K'

/** Returns the text with every control character as `\u001b` is written in code. */
export function escapeControls(text: string): string {
  return text.replaceAll(
    CONTROLS,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Writes lines; an end of a line inside of one is escaped as well. */
export function print(stream: NodeJS.WritableStream, lines: readonly string[]): void {
  stream.write(lines.map((line) => `${escapeControls(line)}\n`).join(''))
}

/** Replaces the line that a terminal shows last. */
export function printOver(stream: NodeJS.WritableStream, line: string): void {
  stream.write(CLEAR_LINE + escapeControls(line))
}
