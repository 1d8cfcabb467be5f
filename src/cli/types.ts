/** `inorigin types`: TypeScript types for the predictors of catalogs. */
import { basename, dirname } from 'node:path'
import type { PredictorEntry } from '../catalog/schema.ts'
import { checkDocument, readDocument } from './document.ts'
import { comment, keyOf, quote } from './types/code.ts'
import { inputType, outputType } from './types/parameter.ts'
import { writeBelow } from './write.ts'

export interface Types {
  /** A declaration file. */
  text: string
  tags: string[]
}

const HEAD = `// Written by \`inorigin types\` from a catalog: run it again when that changes.
import type { InputValue, OutputValue } from 'inorigin'

declare module 'inorigin' {
  interface Predictors {`

/**
 * Declares what `server.predict` takes and gives for every predictor; where two catalogs have a tag,
 * the first one says what it is. Throws `invalid_request` when a file is not a catalog.
 */
export function typesOf(catalogs: readonly string[]): Types {
  const entries = new Map<string, PredictorEntry>()
  for (const entry of catalogs.flatMap(readPredictors)) {
    if (!entries.has(entry.tag)) entries.set(entry.tag, entry)
  }
  const body = Array.from(entries.values(), (entry) => declare(entry))
  return { text: `${[HEAD, ...body].join('\n')}\n  }\n}\n`, tags: [...entries.keys()] }
}

/** Makes the folder, too. Throws `invalid_request` where the file is a link or cannot be written. */
export function writeTypes(path: string, { text }: Types): void {
  writeBelow(dirname(path), basename(path), { text })
}

function declare({ tag, description, signature, implementations }: PredictorEntry): string {
  const inputs = signature.inputs.map((parameter) => {
    // One that has a default may be left out, though it is not said to be optional.
    const mark = parameter.optional || parameter.defaultValue !== undefined ? '?' : ''
    return member(parameter, mark, inputType(parameter))
  })
  const outputs = signature.outputs.map((parameter) =>
    member(parameter, '', outputType(parameter, implementations)),
  )
  return [
    ...comment(description, '    '),
    `    ${quote(tag)}: {`,
    ...block('inputs', inputs),
    ...block('outputs', outputs),
    '    }',
  ].join('\n')
}

function block(name: string, members: readonly string[]): string[] {
  if (members.length === 0) return [`      ${name}: Record<string, never>`]
  return [`      ${name}: {`, ...members, '      }']
}

function member(
  { name, description }: { name: string; description?: string },
  mark: string,
  type: string,
): string {
  return [...comment(description, '        '), `        ${keyOf(name)}${mark}: ${type}`].join('\n')
}

function readPredictors(path: string): PredictorEntry[] {
  const { entries } = checkDocument(readDocument(path), path, true)
  return entries.filter((entry) => entry.type === 'predictor')
}
