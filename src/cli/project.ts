/** What an app's package.json remembers of `inorigin init`. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { InoriginError } from '../error.ts'
import { refuseLinks, writeBelow } from './write.ts'

export interface Remembered {
  publicDir: string
  /** Absent: `sw.js`; `false`: the app has its own. */
  sw?: string | false
  /** Absent: true. */
  guide?: boolean
  /** Absent: false. */
  mlc?: boolean
}

const FILE = 'package.json'

/** What was remembered in the folder of an app; undefined when there is nothing. */
export function recall(app: string): Remembered | undefined {
  const path = join(app, FILE)
  if (!existsSync(path)) return undefined
  const { inorigin } = parse(path, readFileSync(path, 'utf8'))
  if (inorigin === undefined) return undefined
  const { publicDir, sw, guide, mlc } = inorigin as Partial<Remembered>
  if (typeof publicDir !== 'string') {
    const what = `"inorigin" in ${path} names no "publicDir".`
    throw new InoriginError('invalid_request', `${what} Run \`inorigin init <folder>\`.`)
  }
  return {
    publicDir,
    ...((typeof sw === 'string' || sw === false) && { sw }),
    ...(typeof guide === 'boolean' && { guide }),
    ...(typeof mlc === 'boolean' && { mlc }),
  }
}

/** Throws `invalid_request` where {@link remember} could not write. */
export function refuseUnwritable(app: string): void {
  refuseLinks(app, FILE)
}

/** Remembers; false when the app has no package.json. The file keeps its indentation. */
export function remember(
  app: string,
  { publicDir, sw, guide, mlc }: Required<Remembered>,
): boolean {
  const path = join(app, FILE)
  if (!existsSync(path)) return false
  const text = readFileSync(path, 'utf8')
  const inorigin: Remembered = {
    publicDir,
    ...(sw !== 'sw.js' && { sw }),
    ...(!guide && { guide }),
    ...(mlc && { mlc }),
  }
  const indent = /^[ \t]+/m.exec(text)?.[0] ?? 2
  const end = text.endsWith('\n') ? '\n' : ''
  const next = JSON.stringify({ ...parse(path, text), inorigin }, null, indent) + end
  if (next !== text) writeBelow(app, FILE, { text: next })
  return true
}

function parse(path: string, text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (cause) {
    throw new InoriginError('invalid_request', `${path} is not JSON. Correct it first.`, { cause })
  }
}
