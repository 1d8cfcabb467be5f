/** Says what the plugin added to an app, and how large it is. */
import { statSync } from 'node:fs'
import { formatByteCount } from '../cli/progress.ts'
import type { Content } from '../cli/write-file.ts'

export interface SummaryInput {
  version: string
  library: ReadonlyMap<string, Content>
  /** `true` if pages are isolated by default. */
  isolate: boolean
  /** Name of the service worker script; `null` if something else builds it. */
  script: string | null
}

/** Returns the lines of the summary. `where` says where the files are, such as `to dist/`. */
export function summarize(
  verb: string,
  where: string,
  { version, library, isolate, script }: SummaryInput,
): string[] {
  const sizes = Array.from(library, ([name, content]) => ({ name, bytes: countBytes(content) }))
  const sum = (isCounted: (name: string) => boolean): string => {
    const counted = sizes.filter(({ name }) => isCounted(name))
    return formatByteCount(counted.reduce((total, { bytes }) => total + bytes, 0))
  }
  const isRuntime = (name: string) => name.startsWith('ort/') || name.endsWith('.wasm')
  const isChat = (name: string) => /^models\/(guide|glance)\//.test(name)
  const isModel = (name: string) => name.startsWith('models/') && !isChat(name)
  const parts = [
    `runtimes ${sum(isRuntime)}`,
    ...(sizes.some(({ name }) => isChat(name)) ? [`language models ${sum(isChat)}`] : []),
    `predictors ${sum(isModel)}`,
    `scripts ${sum((name) => !isRuntime(name) && !name.startsWith('models/'))}`,
  ]
  const hasGpu = sizes.some(({ name }) => isRuntime(name) && name.includes('.jspi.'))
  const what = script === null ? 'inorigin/' : `${script} and inorigin/`
  return [
    `inorigin ${version}: ${verb} ${what} ${where}: ${library.size} files, ${sum(() => true)}`,
    `  ${parts.join(', ')}. A page loads one runtime of ${hasGpu ? '14 to 27' : '14'} MB, and the models it uses.`,
    isolate
      ? '  serve() isolates pages, so that WASM uses threads. isolate: false turns it off.'
      : '  serve() does not isolate pages, so WASM uses one thread.',
  ]
}

/** Returns the size of the content in bytes. */
export function countBytes(content: Content): number {
  if ('text' in content) return Buffer.byteLength(content.text)
  const { size } = statSync(content.from)
  return Math.min(content.end ?? size, size) - (content.start ?? 0)
}
