/** Runs a comparison: the same prompt for every column, through `/v1/chat/completions`. */
import type { LoadProgress, Server } from '../../src/index.ts'
import { preparing } from '../format.ts'
import { wordsOf } from '../notice.ts'
import { receive, tokensPerSecond, type Answer } from '../wire/answer.ts'
import { completions } from '../wire/completions.ts'
import type { Question } from '../wire/style.ts'
import type { ColumnResult, ColumnSettings } from './result.ts'

/** Functions that show the state of a column while it runs. */
export interface RunView {
  say(text: string): void
  show(result: ColumnResult): void
  /** Resolves when the whole text is shown. */
  end(): Promise<void>
}

/** A question, and what goes with it to every column. */
export type Asked = Pick<Question, 'question' | 'images'> & Partial<Pick<Question, 'history'>>

export interface Lane {
  settings: ColumnSettings
  view: RunView
}

/**
 * Loads all models first, so that no figure contains a load. Then it asks them, together or one
 * after the other. Answers that arrive together are shown in the same frame. Resolves with the
 * results, in the order of the lanes.
 */
export async function runComparison(
  server: Server,
  asked: Asked,
  lanes: readonly Lane[],
  together: boolean,
  signal: AbortSignal,
): Promise<ColumnResult[]> {
  const results: ColumnResult[] = lanes.map(({ settings }) => ({ settings, text: '' }))
  const changed = new Set<number>()
  let frame = 0
  const showAll = (): void => {
    frame = 0
    for (const at of changed) lanes[at]?.view.show(results[at] as ColumnResult)
    changed.clear()
  }
  const update = (at: number, result: ColumnResult): void => {
    results[at] = result
    changed.add(at)
    frame ||= requestAnimationFrame(showAll)
  }
  const ask = async ({ settings, view }: Lane, at: number): Promise<void> => {
    if (results[at]?.error !== undefined) return
    view.say('Reading the question')
    await askOne(server, asked, settings, signal, (result) => update(at, result))
  }
  for (const [at, lane] of lanes.entries()) {
    const error = await load(server, lane, signal)
    if (error !== undefined) update(at, { settings: lane.settings, text: '', error })
  }
  if (together) await Promise.all(lanes.map(ask))
  else for (const [at, lane] of lanes.entries()) await ask(lane, at)
  cancelAnimationFrame(frame)
  showAll()
  await Promise.all(lanes.map(({ view }) => view.end()))
  return results
}

/** Loads the model of a lane. Resolves with an error in words, if there is one. */
async function load(
  server: Server,
  { settings, view }: Lane,
  signal: AbortSignal,
): Promise<string | undefined> {
  view.say('Preparing …')
  const onProgress = (progress: LoadProgress): void => view.say(preparing(progress))
  try {
    await server.models.load(settings.model, { signal, onProgress })
    view.say('Ready')
    return undefined
  } catch (error) {
    return signal.aborted ? 'Stopped' : wordsOf(error)
  }
}

async function askOne(
  server: Server,
  asked: Asked,
  settings: ColumnSettings,
  signal: AbortSignal,
  onChange: (result: ColumnResult) => void,
): Promise<void> {
  const { model, ...rest } = settings
  const request = completions.request({ model, history: [], ...asked, settings: rest })
  const url = `${server.baseURL}/${request.path}`
  const answer: Answer = { style: completions, url, request, raw: '', text: '' }
  const tell = (error?: string): void => onChange({ ...toResult(settings, answer), error })
  try {
    signal.throwIfAborted()
    await receive(answer, server.controlled ? fetch : server.fetch, signal, () => tell())
    tell()
  } catch (error) {
    tell(signal.aborted ? 'Stopped' : wordsOf(error))
  }
}

function toResult(settings: ColumnSettings, answer: Answer): ColumnResult {
  const { text, finish, promptTokens, completionTokens, firstText, end } = answer
  return {
    settings,
    text,
    finish,
    promptTokens,
    completionTokens,
    firstText,
    end,
    tokensPerSecond: tokensPerSecond(answer),
  }
}
