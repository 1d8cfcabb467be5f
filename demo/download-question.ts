/** The question before a large download: its size, the memory, the fit and the space for it. */
import type { Reason } from '../src/index.ts'
import { element } from './dom.ts'
import { bytes } from './format.ts'
import type { ModelFacts } from './look-up.ts'

export type DownloadAnswer = 'download' | 'guide' | 'later'

/** Asks whether to download the model. Resolves with `later` if the dialog is closed otherwise. */
export async function askToDownload(facts: ModelFacts, hasGuide: boolean): Promise<DownloadAnswer> {
  const dialog = element('dialog', 'question-dialog')
  const title = element('h2', '', `Download ${facts.state.name}?`)
  title.id = 'download-title'
  dialog.setAttribute('aria-labelledby', title.id)
  const form = element('form', 'row')
  form.method = 'dialog'
  const canRun = facts.state.device !== null
  form.append(
    choice('later', 'Not now', 'plain'),
    ...(hasGuide ? [choice('guide', 'Use the guide', 'plain')] : []),
    ...(canRun ? [choice('download', 'Download', 'plain strong')] : []),
  )
  const list = element('dl', 'facts')
  list.append(...rowsOf(facts).flatMap(([name, value]) => toRow(name, value)))
  const note = 'It is stored in this browser. You can pause, cancel and delete it at any time.'
  dialog.append(title, list, element('p', 'quiet', note), form)
  document.body.append(dialog)
  dialog.showModal()
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }))
  dialog.remove()
  const { returnValue } = dialog
  return returnValue === 'download' || returnValue === 'guide' ? returnValue : 'later'
}

function choice(value: DownloadAnswer, text: string, className: string): HTMLButtonElement {
  const made = element('button', className, text)
  made.value = value
  made.autofocus = value === 'later'
  return made
}

function rowsOf({ state, explanation, usage }: ModelFacts): [name: string, value: string][] {
  const rows: [string, string][] = []
  if (state.bytes) {
    rows.push(['Download', bytes(state.bytes)])
    rows.push(['Memory', `more than ${bytes(state.bytes)}, the size of its files`])
  }
  rows.push(['This device', fitOf(explanation.reasons)])
  const free = freeBytes(usage)
  if (free !== null) rows.push(['Free storage', `${bytes(free)} for this site in this browser`])
  if (free !== null && state.bytes && state.bytes > free) {
    rows.push(['Warning', 'The storage is too small. Older models are deleted to make room.'])
  }
  return rows
}

/** Returns the verdict on an entry: the choice with its reason, or what stands in the way. */
function fitOf(reasons: readonly Reason[]): string {
  const chosen = reasons.find((reason) => reason.chosen)
  if (chosen) return `runs it on ${placeName(chosen.device)}: ${chosen.why}`
  const whys = new Set(reasons.map(({ why }) => why))
  return `cannot run it: ${[...whys].join('; ') || 'the catalog lists no implementation'}`
}

export function placeName(device: Reason['device']): string {
  if (device === 'upstream') return 'another server'
  return device === 'webgpu' ? 'WebGPU' : 'WASM'
}

/** Returns the bytes that this origin may still store; `null` if the browser does not tell. */
function freeBytes({ quotaBytes, originBytes }: ModelFacts['usage']): number | null {
  return quotaBytes === null || originBytes === null ? null : Math.max(0, quotaBytes - originBytes)
}

function toRow(name: string, value: string): HTMLElement[] {
  return [element('dt', '', name), element('dd', '', value)]
}
