/**
 * Faults and states that no real model or browser produces at will. Each function runs in the page before
 * its own scripts, so it stands alone.
 */

/** An answer full of HTML, whole at once. */
export function hostileAnswer(): void {
  const real = window.fetch
  const text = '<img src=x onerror="stolen=1"> <script>stolen=1</script> <b>bold</b>'
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const body = `${chunk({ content: text }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`
  window.fetch = async (input, init) =>
    String(input).endsWith('/chat/completions') ? new Response(body) : real(input, init)
}

/** An answer that ends in the middle. */
export function brokenAnswer(): void {
  const real = window.fetch
  const body = 'data: {"choices":[{"index":0,"delta":{"content":"Half an"}}]}\n\n'
  window.fetch = async (input, init) =>
    String(input).endsWith('/chat/completions') ? new Response(body) : real(input, init)
}

/** An answer that begins and never ends; sets `aborted` when it is given up. */
export function endlessAnswer(): void {
  const real = window.fetch
  window.fetch = async (input, init) => {
    if (!String(input).endsWith('/chat/completions')) return real(input, init)
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        const text = 'data: {"choices":[{"index":0,"delta":{"content":"one two"}}]}\n\n'
        controller.enqueue(new TextEncoder().encode(text))
        init?.signal?.addEventListener('abort', () => {
          Object.assign(window, { aborted: true })
          controller.error(init.signal?.reason)
        })
      },
    })
    return new Response(body)
  }
}

/** A site that lacks the service worker script. */
export function missingScript(): void {
  const real = window.fetch
  window.fetch = async (input, init) =>
    /\/playground-sw\.js(\?|$)/.test(String(input))
      ? new Response(null, { status: 404 })
      : real(input, init)
  navigator.serviceWorker.register = () => Promise.reject(new TypeError('a bad HTTP response code'))
}

/** A browser that refuses service workers, as in a private window. */
export function refusedWorker(): void {
  const refusal = new DOMException('The operation is insecure.', 'SecurityError')
  navigator.serviceWorker.register = () => Promise.reject(refusal)
}

/** An answer of `scriptedAnswers`. */
export interface ScriptedAnswer {
  deltas: { content?: string; reasoning_content?: string }[]
  /** Default: `stop`. */
  finish?: string
  usage?: object
  /** Error that ends the stream in place of the finish. */
  error?: object
  /** `true` for a stream that does not end by itself. */
  isOpen?: boolean
}

export interface ScriptedWindow extends Window {
  /** Answers to come. Without one, an answer is its number, such as `Answer 1.` */
  script: ScriptedAnswer[]
  /** Bodies of the requests so far. */
  bodies: Record<string, unknown>[]
}

/** Answers of chat completions that the test puts into `window.script`. */
export function scriptedAnswers(): void {
  const real = window.fetch
  const scripted = Object.assign(window as unknown as ScriptedWindow, { script: [], bodies: [] })
  const chunk = (choices: object[], rest: object = {}) =>
    `data: ${JSON.stringify({ choices, ...rest })}\n\n`
  window.fetch = async (input, init) => {
    if (!String(input).endsWith('/chat/completions')) return real(input, init)
    scripted.bodies.push(JSON.parse(String(init?.body)))
    const plain = { deltas: [{ content: `Answer ${scripted.bodies.length}.` }] }
    const given: ScriptedAnswer = scripted.script.shift() ?? plain
    const { deltas, finish = 'stop', usage, error, isOpen = false } = given
    const events = deltas.map((delta) => chunk([{ index: 0, delta, finish_reason: null }]))
    if (error) events.push(chunk([], { error }))
    else if (!isOpen) {
      events.push(chunk([{ index: 0, delta: {}, finish_reason: finish }]))
      if (usage) events.push(chunk([], { usage }))
      events.push('data: [DONE]\n\n')
    }
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        init?.signal?.addEventListener('abort', () => {
          if (isOpen) controller.error(init.signal?.reason)
        })
      },
      // A few at a time, as fast as they are read.
      pull(controller) {
        const text = events.splice(0, 20).join('')
        if (text !== '') controller.enqueue(new TextEncoder().encode(text))
        else if (!isOpen) controller.close()
      },
    })
    return new Response(body)
  }
}

/** A camera that films a stroke. `cameraState()` tells whether it is on. */
export function fakeCamera(): void {
  navigator.mediaDevices.getUserMedia = async () => {
    const canvas = document.createElement('canvas')
    Object.assign(canvas, { width: 200, height: 200 })
    const context = canvas.getContext('2d')!
    const draw = (): void => {
      context.fillStyle = 'white'
      context.fillRect(0, 0, 200, 200)
      context.fillStyle = 'black'
      context.fillRect(92, 30, 16, 140)
      requestAnimationFrame(draw)
    }
    draw()
    const stream = canvas.captureStream()
    const [track] = stream.getTracks()
    Object.assign(window, { cameraState: () => track?.readyState })
    return stream
  }
}
