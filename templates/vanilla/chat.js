/** Streams the text of an answer. `messages` is the conversation so far. */
export async function* chat(server, model, messages) {
  const response = await server.fetch(`${server.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, stream: true, max_tokens: 300 }),
  })
  if (!response.ok) throw new Error((await response.json()).error.message)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  while (true) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split('\n')
    rest = lines.pop()
    for (const line of lines) {
      if (!line.startsWith('data: {')) continue
      const { choices, error } = JSON.parse(line.slice('data: '.length))
      if (error) throw new Error(error.message)
      yield choices[0]?.delta.content ?? ''
    }
  }
}
