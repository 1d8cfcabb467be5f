import type { LoadProgress, Server, Tag } from '../src/index.ts'
import { byId } from './dom.ts'
import { bytes, bytesOf } from './format.ts'
import { nameOf } from './names.ts'
import { SMOLLM2, SMOLLM2_ORIGIN } from './smollm2.ts'
import { createStrip, type StripAction } from './strip.ts'
import { codeOf, troubleWith } from './trouble.ts'

export interface Loading {
  /**
   * Loads a model. Joins its running load, or pauses the load of another tag. With `isQuiet`, the
   * caller shows the error of a load that fails. `onPhase` is called with words for what is done now.
   */
  load(tag: Tag, options?: { isQuiet?: boolean; onPhase?: (words: string) => void }): Promise<void>
  /** Shows a text in place of progress, until the next load. */
  say(text: string, actions?: readonly StripAction[]): void
  /** Shows that something is being done, until the next call. */
  wait(text: string): void
  /** Hides the strip, unless a model is being loaded. */
  clear(): void
  /** Sets the function that returns the way out of a load that failed. */
  onFailure(remedies: (tag: Tag) => readonly StripAction[]): void
  /** Sets the function that is called when a load has ended, well or not. */
  onEnd(callback: () => void): void
}

interface Current {
  tag: Tag
  done: Promise<void>
  giveUp: AbortController
  isQuiet: boolean
  onPhase?: (words: string) => void
  /** Promise that resolves when the load is canceled and its bytes are deleted, if it is. */
  canceling?: Promise<void>
  /** `true` if the answer that waited for the load was stopped. */
  isStopped: boolean
  /** Latest progress of the download; `undefined` before and after. */
  download?: LoadProgress
}

/** Creates the strip above the composer that shows the progress of the server and the model. */
export function createLoading(starting: Promise<Server>): Loading {
  const strip = createStrip()
  const view = createLoadView(strip, starting, (tag) => void start(tag))
  let current: Current | undefined
  /** Load that a question has paused, which needs another model first. */
  let interrupted: Tag | undefined
  let tellEnd = (): void => {}

  async function run(load: Current): Promise<void> {
    const { tag } = load
    const { signal } = load.giveUp
    try {
      const server = await starting
      const onProgress = (progress: LoadProgress): void => {
        if (signal.aborted) return
        view.showProgress(load, progress)
        load.onPhase?.(phaseOf(progress))
      }
      await server.models.load(tag, { signal, onProgress })
      if (!signal.aborted) strip.hide()
    } catch (error) {
      if (!signal.aborted) await view.showEnd(load, error)
      throw error
    } finally {
      if (current === load) {
        current = undefined
        if (interrupted !== undefined) void start(interrupted).catch(() => {})
      }
      tellEnd()
    }
  }

  function start(tag: Tag, isQuiet = false): Promise<void> {
    if (current?.tag === tag) {
      current.isQuiet ||= isQuiet
      current.isStopped = false
      return current.done
    }
    if (!isQuiet || interrupted === tag) interrupted = undefined
    else if (current && !current.isQuiet) interrupted = current.tag
    current?.giveUp.abort()
    const load = createLoad(tag, isQuiet)
    current = load
    load.done = run(load)
    load.done.catch(() => {})
    return load.done
  }

  // A stopped answer leaves the download running, so the strip says so beside its buttons.
  byId('stop', HTMLButtonElement).addEventListener('click', () => {
    if (!current) return
    current.isQuiet = false
    current.isStopped = true
    if (current.download) view.showProgress(current, current.download)
  })
  const clear = (): void => {
    if (!current) strip.hide()
  }
  void showStart(starting, (words) => strip.show(words)).then(clear, () => strip.hide())

  return {
    load(tag, { isQuiet = false, onPhase } = {}) {
      const done = start(tag, isQuiet)
      if (onPhase && current) current.onPhase = onPhase
      return done
    },
    say: strip.say,
    wait: (text) => strip.show(text, { actions: [] }),
    clear,
    onFailure: view.setRemedies,
    onEnd(callback) {
      tellEnd = callback
    },
  }
}

const createLoad = (tag: Tag, isQuiet: boolean): Current => ({
  tag,
  isQuiet,
  isStopped: false,
  giveUp: new AbortController(),
  done: Promise.resolve(),
})

/** Creates the view of loads in the strip, with the buttons that end and repeat them. */
function createLoadView(
  strip: ReturnType<typeof createStrip>,
  starting: Promise<Server>,
  repeat: (tag: Tag) => void,
) {
  let remediesOf = (_tag: Tag): readonly StripAction[] => []

  const buttons = createButtons(strip, starting, (tag) => remediesOf(tag))

  return {
    setRemedies(remedies: (tag: Tag) => readonly StripAction[]): void {
      remediesOf = remedies
    },
    showProgress(load: Current, progress: LoadProgress): void {
      if (progress.phase !== 'download') {
        load.download = undefined
        strip.show(`Preparing ${nameOf(load.tag)} for this device …`, { actions: [] })
        return
      }
      const isFirst = load.download === undefined
      load.download = progress
      const actions = isFirst ? [buttons.pause(load), buttons.cancel(load)] : undefined
      const prefix = load.isStopped ? 'The answer was stopped. ' : ''
      strip.show(prefix + wordsFor(progress), { part: shareOf(progress), actions })
    },
    /** Shows the error of a load that has failed, or was paused or canceled. */
    async showEnd(load: Current, error: unknown): Promise<void> {
      const { tag, isQuiet, download, canceling } = load
      const again = (label: string): StripAction => ({ label, run: () => repeat(tag) })
      if (canceling) return canceling
      if (codeOf(error) === 'load_paused') {
        const size = download ? ` at ${bytesOf(download.loadedBytes, download.totalBytes)}` : ''
        const words = `The download of ${nameOf(tag)} is paused${size}.`
        return strip.say(words, [again('Resume'), buttons.cancel(load)])
      }
      if (isQuiet) return strip.hide()
      return strip.say(troubleWith(nameOf(tag), error), [again('Try again'), ...remediesOf(tag)])
    },
  }
}

/** Creates the buttons that end a load: one keeps what was downloaded, the other deletes it. */
function createButtons(
  strip: ReturnType<typeof createStrip>,
  starting: Promise<Server>,
  remediesOf: (tag: Tag) => readonly StripAction[],
) {
  function pause({ tag }: Current): void {
    strip.show('Pausing …', { actions: [] })
    const failed = (error: unknown): void => strip.say(troubleWith(nameOf(tag), error))
    starting.then(({ models }) => models.pause(tag)).catch(failed)
  }

  /** Cancels the load, and says so when its bytes are deleted, which is after it has ended. */
  async function cancel({ tag, giveUp }: Current): Promise<void> {
    strip.show('Canceling …', { actions: [] })
    try {
      const { models } = await starting
      await models.cancel(tag)
      if (giveUp.signal.aborted) return
      strip.say(`The download of ${nameOf(tag)} was canceled.`, remediesOf(tag))
    } catch (error) {
      strip.say(troubleWith(nameOf(tag), error))
    }
  }

  return {
    pause: (load: Current): StripAction => ({ label: 'Pause', run: () => pause(load) }),
    cancel: (load: Current): StripAction => ({
      label: 'Cancel download',
      run: () => void (load.canceling = cancel(load)),
    }),
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

/** Returns a line about a download: bytes, rate and remaining time. */
export function wordsFor(progress: LoadProgress): string {
  const { tag, loadedBytes, totalBytes, bytesPerSecond, remainingSeconds } = progress
  const origin = tag === SMOLLM2 ? `, ${SMOLLM2_ORIGIN}` : ''
  const facts = [`Downloading ${nameOf(tag)}`, bytesOf(loadedBytes, totalBytes) + origin]
  if (bytesPerSecond > 0) facts.push(`${bytes(bytesPerSecond)}/s`)
  const seconds = Math.round(remainingSeconds ?? 0)
  // The rate of the first bytes says little.
  if (seconds > 0 && seconds < 120) facts.push(`${seconds} s left`)
  else if (seconds > 0 && loadedBytes > 1_000_000)
    facts.push(`${Math.round(seconds / 60)} min left`)
  return facts.join(' · ')
}

/** Returns a short line about a load, for the answer that waits for it. */
function phaseOf({ tag, phase, loadedBytes, totalBytes }: LoadProgress): string {
  if (phase !== 'download') return `Preparing ${nameOf(tag)}`
  return `Loading ${nameOf(tag)}, ${bytesOf(loadedBytes, totalBytes)}`
}

/** Returns the part of a download that is done. */
export function shareOf({ phase, loadedBytes, totalBytes }: LoadProgress): number | undefined {
  return phase === 'download' && totalBytes > 0 ? loadedBytes / totalBytes : undefined
}
