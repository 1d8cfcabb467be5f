/** Shows answers as Markdown. A worker parses them, so an answer cannot stop the page. */
import { element } from '../dom.ts'
import { nextTask } from '../task.ts'
import { update } from './build.ts'
import type { RenderNode } from './nodes.ts'
import type { Began, Growth, Rendered } from './worker.ts'

/** Milliseconds in which the worker must parse what has arrived. Then the source is shown. */
const PARSE_TIMEOUT_MS = 5_000

/** Milliseconds in which the worker must load what it needs for that. */
const LOAD_TIMEOUT_MS = 60_000

/** Milliseconds after which the page may paint before it builds more blocks. */
const SLICE_MS = 8

/** Longest answer that is parsed. A longer one is shown as its source. */
const MAX_CHARACTERS = 1_000_000

/** An answer on the page. */
export interface MarkdownView {
  /** Shows the text of the answer so far, which only grows. Calls `onShown` after each change. */
  show(text: string, onShown: () => void): void
  /** Shows the whole answer. Resolves when it is there. */
  end(text: string): Promise<void>
  /** Forgets the answer, which need not be shown any more. */
  close(): void
}

interface Open {
  receive(rendered: Rendered): void
  /** Notes that a new worker needs the whole text, and sends it if the old one had not answered. */
  restart(wasWaiting: boolean): void
  /** Shows the source. */
  giveUp(): void
}

const open = new Map<number, Open>()
/** Answers that the worker has not returned yet, in the order in which they were sent. */
let waiting: number[] = []
let answers = 0
let worker: Worker | undefined
let timer: ReturnType<typeof setTimeout> | undefined

function send(growth: Growth): void {
  worker ??= startWorker()
  waiting.push(growth.answer)
  worker.postMessage(growth)
  if (waiting.length === 1) watch(LOAD_TIMEOUT_MS)
}

/** Gives the worker this time for the first of the answers that wait. */
function watch(time: number): void {
  clearTimeout(timer)
  if (waiting.length > 0) timer = setTimeout(replaceWorker, time)
}

function startWorker(): Worker {
  const made = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  made.addEventListener('message', ({ data }: MessageEvent<Began | Rendered>) => {
    if (data.type === 'began') return watch(PARSE_TIMEOUT_MS)
    waiting.shift()
    watch(LOAD_TIMEOUT_MS)
    open.get(data.answer)?.receive(data)
  })
  made.addEventListener('error', (event) => {
    event.preventDefault()
    if (worker === made) replaceWorker()
  })
  return made
}

/** Ends the worker. The answer that it could not parse becomes text; the others are parsed anew. */
function replaceWorker(): void {
  clearTimeout(timer)
  worker?.terminate()
  worker = undefined
  const [failed, ...unanswered] = waiting
  waiting = []
  if (failed !== undefined) open.get(failed)?.giveUp()
  for (const [answer, view] of open)
    if (answer !== failed) view.restart(unanswered.includes(answer))
}

/** Loads the parser, so that the first answer need not wait for it. */
export function prepareMarkdown(): void {
  worker ??= startWorker()
}

/** Shows an answer in `parent`. */
export function createMarkdownView(parent: HTMLElement): MarkdownView {
  const answer = (answers += 1)
  const blocks: { box: HTMLElement; nodes: RenderNode[] }[] = []
  let text = ''
  let sent = 0
  let isWhole = false
  /** Request that the worker has not answered yet: none, a part of the text, or its end. */
  let pending: 'nothing' | 'part' | 'whole' = 'nothing'
  let plain: Text | undefined
  let onShown = (): void => {}
  let settle = (): void => {}

  function request(): void {
    if (plain || pending !== 'nothing' || (sent === text.length && !isWhole)) return
    if (text.length > MAX_CHARACTERS) return giveUp()
    pending = isWhole ? 'whole' : 'part'
    send({ answer, text: text.slice(sent), isWhole })
    sent = text.length
  }

  async function receive({ blocks: changed, count }: Rendered): Promise<void> {
    // A view before this one may have shown the beginning of an answer that continues.
    if (blocks.length === 0) parent.replaceChildren()
    let began = performance.now()
    for (const [index, nodes] of changed) {
      const block = (blocks[index] ??= addBlock())
      update(block.box, block.nodes, nodes)
      block.nodes = nodes
      if (performance.now() - began < SLICE_MS) continue
      onShown()
      await nextTask()
      began = performance.now()
    }
    for (const { box } of blocks.splice(count)) box.remove()
    onShown()
    const wasWhole = pending === 'whole'
    pending = 'nothing'
    if (wasWhole) finish()
    else request()
  }

  function addBlock(): { box: HTMLElement; nodes: RenderNode[] } {
    const box = element('div', 'block')
    parent.append(box)
    return { box, nodes: [] }
  }

  function finish(): void {
    open.delete(answer)
    settle()
  }

  function giveUp(): void {
    if (!plain) {
      plain = document.createTextNode('')
      parent.classList.add('plain-text')
      parent.replaceChildren(plain)
    }
    plain.appendData(text.slice(plain.length))
    onShown()
    if (isWhole) finish()
  }

  open.set(answer, {
    receive: (rendered) => void receive(rendered),
    restart(wasWaiting) {
      sent = 0
      if (!wasWaiting) return
      pending = 'nothing'
      request()
    },
    giveUp,
  })

  return {
    show(next, shown) {
      text = next
      onShown = shown
      if (plain) giveUp()
      else request()
    },
    async end(next) {
      if (!open.has(answer)) return
      text = next
      isWhole = true
      const shown = new Promise<void>((resolve) => (settle = resolve))
      if (plain) giveUp()
      else request()
      await shown
    },
    close() {
      if (!open.delete(answer)) return
      // The worker forgets an answer that is whole.
      if (sent > 0 && worker) send({ answer, text: '', isWhole: true })
      settle()
    },
  }
}
