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
