/** The question before a large download: its size, the memory, the fit and the space for it. */
import type { Reason } from '../src/index.ts'
import { element } from './dom.ts'
import { bytes } from './format.ts'
import type { ListedModel } from './listing.ts'
import { freeBytes, type ModelFacts } from './look-up.ts'

export type Row = readonly [name: string, value: string]

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

function rowsOf({ state, listed, explanation, usage }: ModelFacts): Row[] {
  const rows: Row[] = []
  if (state.bytes) {
    const files = explanation.chosen ? `, files of ${explanation.chosen}` : ''
    rows.push(['Download', `${bytes(state.bytes)}${files}`])
    rows.push(['Memory', `more than ${bytes(state.bytes)}, the size of its files`])
  }
  rows.push(['This device', fitOf(explanation.reasons)])
  if (listed) rows.push(...cardRows(listed))
  const free = freeBytes(usage)
  if (free !== null) rows.push(['Free storage', `${bytes(free)} for this site in this browser`])
  if (free !== null && state.bytes && state.bytes > free) {
    rows.push(['Warning', 'The storage is too small. Older models are deleted to make room.'])
  }
  return rows
}

/** Returns what the makers of a model state, as the catalog or its files have it. */
export function cardRows({ license, languages, max_input_tokens: context }: ListedModel): Row[] {
  return [
    ['License', license ?? 'not stated'],
    ['Languages', languages?.map(languageName).join(', ') ?? 'not stated'],
    ...(context ? [['Context', `${context.toLocaleString('en')} tokens`] as const] : []),
  ]
}

/** Returns the English name of a language. */
export function languageName(tag: string): string {
  return new Intl.DisplayNames(['en'], { type: 'language' }).of(tag) ?? tag
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

function toRow(name: string, value: string): HTMLElement[] {
  return [element('dt', '', name), element('dd', '', value)]
}
