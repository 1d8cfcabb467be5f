import type { AnyPage } from './any-page.ts'

export interface Answer {
  status: number
  headers: Record<string, string>
  text: string
}

/** Resolves with the response to the page's own `fetch`. With a body, the method is POST. */
export function fetchIn(
  page: AnyPage,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return page.evaluate(
    async ([url, json, extra]) => {
      const init: RequestInit =
        json === undefined
          ? { headers: extra }
          : {
              method: 'POST',
              headers: { 'content-type': 'application/json', ...extra },
              body: JSON.stringify(json),
            }
      const response = await fetch(url, init)
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        text: await response.text(),
      }
    },
    [path, body, headers] as const,
  )
}

/** Asks the guide in eight tokens. Resolves with its text, or with the status and body of a refusal. */
export async function askGuide(page: AnyPage): Promise<string> {
  const { status, text } = await fetchIn(page, '/v1/chat/completions', {
    model: '@inorigin/guide',
    messages: [{ role: 'user', content: 'What is inorigin?' }],
    temperature: 0,
    max_tokens: 8,
  })
  return status === 200 ? JSON.parse(text).choices[0].message.content : `${status} ${text}`
}

/** Asks the guide for a message of four tokens. */
export const askBriefly = (page: AnyPage): Promise<Answer> =>
  fetchIn(page, '/v1/messages', {
    model: '@inorigin/guide',
    temperature: 0,
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hello' }],
  })
