/**
 * The formats in which models call tools. A row of the table has the marks of a format and the
 * syntax of its calls. The detection in a chat template, the constraints of an answer, the reader
 * and the writer follow from it. Calls are parsed while they arrive: `parser.ts` finds a format's
 * triggers, and readers wait for more text where they need it.
 */
import type { ToolFormat } from './format.ts'
import { createFormat } from './frame.ts'
import { FORMAT_ROWS, HERMES_ROW } from './table.ts'

export { callableTools, larkOf, toolConstraint, type ToolFormat } from './format.ts'

/** The format of models that have none of their own. */
export const hermes: ToolFormat = createFormat(HERMES_ROW)

/** All formats, specific ones first: their templates may contain the markers of simpler formats. */
export const FORMATS: readonly ToolFormat[] = FORMAT_ROWS.map((row) =>
  row === HERMES_ROW ? hermes : createFormat(row),
)

/** Returns the format that a chat template teaches; `null` if it is unknown. */
export const detectFormat = (template: string): ToolFormat | null =>
  FORMATS.find((format) => format.detect(template)) ?? null
