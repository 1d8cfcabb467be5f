/** Formats the report of what the command did. */
import { relative, sep } from 'node:path'
import type { AddOptions, AddResult } from './add.ts'
import { createSnippet } from './add/snippet.ts'
import type { InitResult } from './init.ts'
import { formatByteCount } from './progress.ts'

export function formatAddReport(
  result: AddResult,
  { publicDir }: Pick<AddOptions, 'publicDir'>,
): string[] {
  const { entry, folder, catalog, files, bytes, splitFiles, notes, shapes, isReady } = result
  const url = `/${relative(publicDir, catalog).split(sep).join('/')}`
  const what = entry.type === 'predictor' ? 'predictor' : 'chat model'
  const lines = [
    `Added the ${what} ${entry.tag}: ${files} ${files === 1 ? 'file' : 'files'}, ${formatByteCount(bytes)}, in ${folder}${sep}`,
  ]
  if (splitFiles.length > 0) lines.push(`Split into parts: ${splitFiles.join(', ')}`)
  if (entry.type === 'predictor') {
    for (const side of ['inputs', 'outputs'] as const) {
      lines.push('', `${side}:`)
      for (const { name, type, description } of entry.signature[side]) {
        lines.push(`  ${name}  ${type}  ${description ?? ''}`)
      }
    }
  }
  if (notes.length > 0) lines.push('', 'Please check:', ...notes.map((note) => `- ${note}`))
  lines.push('', `Its entry is in ${catalog}. You can edit it.`)
  if (!isReady) lines.push(`The runtime is missing: run \`npx inorigin init ${publicDir}\`.`)
  const code = createSnippet(entry, url, shapes).split('\n')
  return [...lines, '', 'In your page:', '', ...code.map((line) => line && `  ${line}`)]
}

export interface InitContext {
  version: string
  /** File name of the service worker script; `false` if the app has its own. */
  sw: string | false
  /** `true` if package.json names the folder now. */
  isRemembered: boolean
}

export function formatInitReport(
  result: InitResult,
  { version, sw, isRemembered }: InitContext,
): string[] {
  const { script, folder, files, bytes, removed } = result
  const lines = [
    `inorigin ${version}: wrote ${script === null ? '' : `${script} and `}${folder}${sep}, ${files} files, ` +
      `${formatByteCount(bytes)}.`,
  ]
  const removedFiles = removed.length === 1 ? '1 file that is' : `${removed.length} files that are`
  if (removed.length > 0) lines.push(`Removed ${removedFiles} no longer needed.`)
  return [
    ...lines,
    isRemembered
      ? 'package.json remembers the folder: `inorigin init` refreshes it after an update.'
      : 'There is no package.json here to remember the folder. Name it again after an update.',
    `In your page: ${sw === 'sw.js' ? 'await serve()' : `await serve({ worker: '/${sw || '<your worker>'}' })`}`,
  ]
}
