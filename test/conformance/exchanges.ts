/** What went over the wire, judged by the grammars of streams and the shapes of bodies. */
import { checkMessageStream } from '../support/anthropic-grammar.ts'
import { checkErrorBody } from '../support/error-body.ts'
import { checkChatStream, checkChatUsage } from '../support/openai-grammar.ts'
import { checkResponse, checkResponseStream } from '../support/responses-grammar.ts'
import { ensure, equal } from './judge.ts'
import type { Exchange, Fields } from './tap.ts'

/** Checks of which the client gives up what it gets. */
const ABORTS = 'abort'
/** Of which the client must learn at once that trying again is no use. */
const FAILURES = ['invalid', 'unauthorised', 'unknown', 'tooLarge', 'overflow']

/** Throws on the first thing that is not as it must be. */
export function judgeExchanges(
  check: string,
  outcome: 'pass' | 'refused',
  exchanges: readonly Exchange[],
): void {
  ensure(exchanges.length > 0, 'nothing was asked')
  if (outcome === 'refused' || FAILURES.includes(check)) {
    equal(exchanges.length, 1, 'how often it was asked')
  }
  const aborted = check === ABORTS
  const givenUp = exchanges.filter(({ end }) => end === 'given up')
  if (aborted) equal(givenUp.length, 1, 'how many answers were given up')
  for (const exchange of exchanges) {
    const { end } = exchange
    ensure(end === 'whole' || end === 'given up', `an answer is ${end}`)
    judgeExchange(exchange, aborted && end === 'given up')
  }
}

/** Some clients give up what they have read to its last event; only what was `cut` may lack that. */
function judgeExchange(exchange: Exchange, cut: boolean): void {
  const { path, sent, status, headers, received } = exchange
  ensure(headers['x-request-id']?.startsWith('req_') ?? false, 'no x-request-id')
  equal(headers['request-id'], headers['x-request-id'], 'request-id')
  const type = headers['content-type'] ?? ''
  if (status >= 400) {
    equal(type, 'application/json', 'the type of an error')
    return checkErrorBody(received, headers)
  }
  if (type.startsWith('text/event-stream')) {
    return judgeStream(path, sent ?? {}, received, cut)
  }
  if (path.includes('/resources/')) return
  equal(type, 'application/json', 'the type of an answer')
  judgeBody(path, JSON.parse(received) as Fields)
}

function judgeStream(path: string, sent: Fields, raw: string, cut: boolean): void {
  const { stream_options: options, logprobs } = sent
  switch (styleOf(path)) {
    case 'chat': {
      const includeUsage = Boolean((options as Fields | undefined)?.['include_usage'])
      checkChatStream(raw, { includeUsage, logprobs: logprobs === true, cut })
      break
    }
    case 'messages':
      checkMessageStream(raw, { cut })
      break
    case 'responses':
      checkResponseStream(raw, { cut })
      break
    default:
      // Which its client has read, to the last empty line.
      ensure(path.endsWith('/predictions/remote'), `a stream from ${path}`)
  }
}

function judgeBody(path: string, body: Fields): void {
  if (styleOf(path) === 'chat') checkChatUsage(body['usage'])
  if (styleOf(path) === 'responses') checkResponse(body)
}

const styleOf = (path: string): string | undefined =>
  /\/(chat|messages|responses)(?:\/completions)?$/.exec(path)?.[1]
