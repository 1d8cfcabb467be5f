import { serve } from 'inorigin'

/** Asks the model through the page's own origin, and returns the whole answer. */
export async function ask() {
  const server = await serve()
  const response = await fetch(`${server.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: '@inorigin/guide',
      max_tokens: 12,
      messages: [{ role: 'user', content: 'What is inorigin?' }],
    }),
  })
  const { choices, error } = await response.json()
  return error ? `Error: ${error.message}` : choices[0].message.content
}
