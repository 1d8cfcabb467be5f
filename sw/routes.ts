/**
 * Routes of the app that the service worker answers with its models, such as `/api/chat`. Their types
 * are public, so this file names no type that only a service worker has.
 */
import { InoriginError } from '../src/error.ts'
import { errorResponse } from '../src/wire/errors.ts'
import { createId } from '../src/wire/http.ts'

/** The endpoints of `/v1` inside the service worker, whose own `fetch` does not reach them. */
export interface RouteServer {
  /** Answers requests to `/v1` and passes all others to the network. */
  fetch: typeof fetch
  /** Base URL for OpenAI-style clients. It ends in `/v1`. */
  baseURL: string
}

/** Answers a request. An error that it throws becomes a response with status 500 or its own. */
export type AppRoute = (request: Request, server: RouteServer) => Response | Promise<Response>

/** Routes by their path below the scope, such as `/api/chat`. */
export type AppRoutes = Readonly<Record<string, AppRoute>>

/**
 * Returns the routes by path.
 *
 * @throws InoriginError `invalid_request` for a path that is no path below the scope, or in `/v1`.
 */
export function parseRoutes(routes: AppRoutes, base: string): ReadonlyMap<string, AppRoute> {
  const entries = Object.entries(routes).map(([path, route]) => {
    if (!/^\/(?!v1(\/|$))[^?#]*$/.test(path)) {
      const what = `routes must have paths such as /api/chat outside /v1, not "${path}".`
      throw new InoriginError('invalid_request', what, { param: 'routes' })
    }
    return [base + path.slice(1), route] as const
  })
  return new Map(entries)
}

/** Runs the route. Its errors have the body that those of `/v1` have. */
export async function runRoute(
  route: AppRoute,
  request: Request,
  server: RouteServer,
): Promise<Response> {
  try {
    return await route(request, server)
  } catch (error) {
    if (request.signal.aborted) throw error
    return errorResponse(InoriginError.from(error), createId('req_'))
  }
}
