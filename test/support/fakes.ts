/**
 * What cannot be had from a real model or browser at will. Each function runs in the page before its own
 * scripts, so it stands alone.
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
