import type { LoadProgress, Server, Tag } from '../src/index.ts'
import { byId } from './dom.ts'
import { bytes, bytesOf } from './format.ts'
import { wordsOf } from './notice.ts'

export interface Loading {
  /** Loads a model. Joins its running load, or cancels the load of another tag. */
  load(tag: Tag): Promise<void>
  /** Shows a text in place of progress, until the next load. */
  say(text: string): void
}

/** Creates the strip above the composer that shows the progress of the server and the model. */
export function createLoading(starting: Promise<Server>): Loading {
  const strip = byId('loading', HTMLElement)
  const text = byId('loading-text', HTMLElement)
  const bar = byId('loading-bar', HTMLProgressElement)
  let current: { tag: Tag; done: Promise<void>; giveUp: AbortController } | undefined

  function show(words: string, part?: number): void {
    strip.hidden = false
    text.textContent = words
    bar.hidden = false
    if (part === undefined) bar.removeAttribute('value')
    else bar.value = part
  }

  function say(words: string): void {
    show(words)
    bar.hidden = true
  }

  async function run(tag: Tag, signal: AbortSignal): Promise<void> {
    const server = await starting
    try {
      const onProgress = (progress: LoadProgress): void => {
        if (!signal.aborted) show(wordsFor(progress), shareOf(progress))
      }
      await server.models.load(tag, { signal, onProgress })
      if (!signal.aborted) strip.hidden = true
    } catch (error) {
      if (!signal.aborted) say(`${tag} could not be loaded. ${wordsOf(error)}`)
      throw error
    } finally {
      if (current?.tag === tag) current = undefined
    }
  }

  void showStart(starting, show).then(
    () => (strip.hidden = current === undefined),
    () => (strip.hidden = true),
  )

  return {
    load(tag) {
      if (current?.tag === tag) return current.done
      current?.giveUp.abort()
      const giveUp = new AbortController()
      const done = run(tag, giveUp.signal)
      done.catch(() => {})
      current = { tag, done, giveUp }
      return done
    },
    say,
  }
}

async function showStart(starting: Promise<Server>, show: (words: string) => void): Promise<void> {
  const container = navigator.serviceWorker
  const phase = (): void =>
    show(
      container?.controller
        ? 'Starting the server: looking for the tab that hosts the models …'
        : 'Starting the server: the service worker is taking control of this page …',
    )
  const over = new AbortController()
  container?.addEventListener('controllerchange', phase, { signal: over.signal })
  phase()
  await starting.finally(() => over.abort())
}

function wordsFor({ tag, phase, loadedBytes, totalBytes, bytesPerSecond }: LoadProgress): string {
  const name = tag.slice(tag.indexOf('/') + 1)
  if (phase !== 'download') return `Preparing ${name} for this device …`
  const speed = bytesPerSecond > 0 ? ` · ${bytes(bytesPerSecond)}/s` : ''
  return `Downloading ${name} · ${bytesOf(loadedBytes, totalBytes)}${speed}`
}

function shareOf({ phase, loadedBytes, totalBytes }: LoadProgress): number | undefined {
  return phase === 'download' && totalBytes > 0 ? loadedBytes / totalBytes : undefined
}
