/** Runs JavaScript of a model or a user in a document that has no origin and no network. */

const DEADLINE_MS = 5_000
/** Time for the document to load. The deadline of the code begins after it. */
const LOAD_TIMEOUT_MS = 10_000
/** Time from the end of the load to the first message. The page of an error sends none. */
const READY_TIMEOUT_MS = 1_000
const MAX_CHARACTERS = 20_000

export interface SandboxOptions {
  signal?: AbortSignal
  /** Milliseconds after which the code is ended. Default: 5,000. */
  deadline?: number
}

interface Outcome {
  error?: string
  value?: string
  /** Lines that the code logged. */
  logs?: string[]
}

/**
 * Runs an expression, or the body of an async function, with the variable `args`. Resolves with
 * what it logged and returned, as text.
 *
 * The code runs in a worker of a sandboxed document, `sandbox.html`, whose own policy forbids all
 * requests. The document is removed at the end, which also ends a loop that never does.
 *
 * @throws Error with the message of the code's own error, or if the deadline has passed.
 */
export async function runSandboxed(
  code: string,
  args: Record<string, unknown>,
  { signal, deadline = DEADLINE_MS }: SandboxOptions = {},
): Promise<string> {
  signal?.throwIfAborted()
  const frame = document.createElement('iframe')
  frame.setAttribute('sandbox', 'allow-scripts')
  frame.hidden = true
  frame.title = 'Sandbox for code'
  frame.src = new URL('sandbox.html', document.baseURI).href
  try {
    return toText(await exchange(frame, { code, args }, deadline, signal))
  } finally {
    frame.remove()
  }
}

/** Loads the frame, sends it the task, and resolves with its answer. */
async function exchange(
  frame: HTMLIFrameElement,
  task: { code: string; args: Record<string, unknown> },
  deadline: number,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  const listening = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    return await new Promise<Outcome>((resolve, reject) => {
      let isReady = false
      const expect = (milliseconds: number, text: string): void => {
        clearTimeout(timer)
        timer = setTimeout(() => reject(new Error(text)), milliseconds)
      }
      const onMessage = ({ source, data }: MessageEvent<Outcome | 'ready'>): void => {
        // The document has no origin, so only the window that sent the message tells who did.
        if (source !== frame.contentWindow) return
        if (data !== 'ready') return resolve(data)
        isReady = true
        expect(deadline, `The code did not end within ${deadline / 1_000} s.`)
        frame.contentWindow?.postMessage(task, '*')
      }
      const until = { signal: listening.signal }
      addEventListener('message', onMessage, until)
      signal?.addEventListener('abort', () => reject(signal.reason), until)
      const notLoaded = explainNotLoaded()
      frame.addEventListener('load', () => isReady || expect(READY_TIMEOUT_MS, notLoaded), until)
      expect(LOAD_TIMEOUT_MS, notLoaded)
      document.body.append(frame)
    })
  } finally {
    clearTimeout(timer)
    listening.abort()
  }
}

/** Returns why the document may not have loaded, and what to do. */
function explainNotLoaded(): string {
  const what = 'The sandbox did not load. The server must let this page frame sandbox.html'
  if (!crossOriginIsolated) return `${what}.`
  const headers =
    '"Cross-Origin-Embedder-Policy: require-corp" and "Cross-Origin-Resource-Policy: cross-origin"'
  return `${what}, and send it with ${headers}.`
}

function toText({ error, value = '', logs = [] }: Outcome): string {
  const lines = [...logs, ...(error === undefined ? [value] : [])].filter((line) => line !== '')
  const text = lines.map(String).join('\n').slice(0, MAX_CHARACTERS)
  if (error === undefined) return text
  throw new Error([String(error).slice(0, MAX_CHARACTERS), text].filter(Boolean).join('\n'))
}
