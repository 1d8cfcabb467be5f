/** Interrupts the model worker of a site exactly between two tokens of an answer. */
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TokenFault {
  /** Script of the model worker, to be served in place of the built one. */
  script: string
  /**
   * Has the next answer stop before it sends more than that number of tokens. Resolves when it has
   * sent them and the worker stands still; it does so until its thread ends.
   */
  at(tokens: number): Promise<void>
  /** Ends the worker that stands still, from within. */
  endWorker(): void
  close(): Promise<void>
}

interface Armed {
  tokens: number
  reached: () => void
}

/**
 * Starts the server that the script asks. The script sends each token at once, instead of merging
 * events that come within milliseconds.
 */
export async function openTokenFault(): Promise<TokenFault> {
  const state: { armed?: Armed; struck?: Armed; waiting?: ServerResponse } = {}
  const server = createServer((request, response) => {
    response.setHeader('access-control-allow-origin', '*')
    // The worker that waits for this response stands still.
    if (request.url === '/reached') {
      state.waiting = response
      return state.struck?.reached()
    }
    const { armed } = state
    state.armed = undefined
    state.struck = armed ?? state.struck
    response.end(String(armed?.tokens ?? 'none'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  const built = readFileSync('dist-demo/inorigin/model-worker.js', 'utf8')
  return {
    script: `(${interrupt.toString()})(${JSON.stringify(url)})\n${built}`,
    at: (tokens) => new Promise((reached) => (state.armed = { tokens, reached })),
    endWorker: () => void state.waiting?.end(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Runs in the model worker, before its own script. */
function interrupt(url: string): void {
  /** Milliseconds that the clock gains with each event, so that the next one is not merged. */
  const STEP_MS = 20
  const { now } = performance
  let gained = 0
  performance.now = () => now.call(performance) + gained

  const ask = (path: string): string => {
    const request = new XMLHttpRequest()
    request.open('GET', url + path, false)
    request.send()
    return request.responseText
  }
  const { postMessage } = MessagePort.prototype
  let limit = Infinity
  let sent = 0
  let hasEnded = false
  MessagePort.prototype.postMessage = function (this: MessagePort, ...args: [unknown]) {
    const event = (args[0] as { event?: { type?: string; tokens?: number[] } } | null)?.event
    if (event?.type === 'start') {
      const answer = ask('/armed')
      limit = answer === 'none' ? Infinity : Number(answer)
      sent = 0
    }
    if (event) gained += STEP_MS
    sent += event?.tokens?.length ?? 0
    if (sent > limit || (event?.type === 'finish' && limit !== Infinity)) {
      ask('/reached')
      hasEnded = true
      self.close()
    }
    // The task in which a worker is closed runs to its end.
    if (hasEnded) return
    return postMessage.apply(this, args)
  } as typeof postMessage
}
