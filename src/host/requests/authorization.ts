/** Checks the API keys of requests. */
import { InoriginError } from '../../error.ts'
import type { Caller } from '../../types/index.ts'

/** Throws `authentication` if the caller must not use the host. */
export type Authorize = (caller: Caller) => void

/** Creates the check. With `null` as keys, everybody may use the host. */
export function createAuthorization(apiKeys: readonly string[] | null): Authorize {
  return ({ key }) => {
    if (apiKeys === null || (key !== null && apiKeys.includes(key))) return
    const what = key === null ? 'Missing API key.' : 'Invalid API key.'
    const todo =
      'Send one of the keys given to serve({ apiKeys }), as "Authorization: Bearer" or "x-api-key".'
    throw new InoriginError('authentication', `${what} ${todo}`, { code: 'invalid_api_key' })
  }
}
