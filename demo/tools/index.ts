/** The tools of the chat: a button that opens their dialog, and the loop that calls them. */
import { byId } from '../dom.ts'
import type { Answer } from '../wire/answer.ts'
import type { LoopView } from './loop.ts'
import { readToolSettings } from './store.ts'

export interface Tools {
  /** Returns `true` if a tool is turned on. */
  hasTools(): boolean
  /**
   * Sends the request of an answer, with the tools that are turned on, and repeats it with their
   * results until the model calls none. Without tools, it only calls `send`.
   */
  converse(
    answer: Answer,
    view: LoopView,
    send: (answer: Answer) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void>
}

/** Creates the tools. What they need is loaded when the first one is turned on. */
export function createTools(): Tools {
  const opener = byId('tools-open', HTMLButtonElement)

  function tell(): void {
    const { length } = readToolSettings().enabled
    opener.textContent = length === 0 ? 'Tools: none' : `Tools: ${length}`
  }

  function open(): void {
    void import('./dialog.ts').then(({ openDialog }) => openDialog(tell))
  }

  opener.addEventListener('click', open)
  tell()

  return {
    hasTools: () => readToolSettings().enabled.length > 0,
    async converse(answer, view, send, signal) {
      const settings = readToolSettings()
      if (settings.enabled.length === 0) return send(answer)
      const [{ converse }, { enabledTools }] = await Promise.all([
        import('./loop.ts'),
        import('./registry.ts'),
      ])
      const { choice, maxRounds } = settings
      const agent = { tools: enabledTools(settings), choice, maxRounds }
      return converse(agent, answer, view, send, signal)
    },
  }
}
