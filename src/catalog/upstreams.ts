/** Decides which upstream implementations may answer, and explains it. */
import type { Reason, Route } from '../types/index.ts'
import { isBelow } from '../values/text.ts'
import type { PredictorEntry } from './schema.ts'
import type { Condition, Upstream, WrittenUpstream } from './upstream-schema.ts'

/** The app's rules for upstream URLs. */
export interface UpstreamPolicy {
  /** URL of the scope, with a trailing slash. */
  scope: string
  /** `true` for a catalog that the app passed as a document, which is consent by itself. */
  isGiven: boolean
  /** URLs that the app allows in catalogs from a URL. A URL includes all paths below it. */
  allowed: readonly string[]
}

interface RoutedEntry {
  upstreams?: readonly Upstream[] | undefined
}

const WITHOUT_POLICY: UpstreamPolicy = { scope: '', isGiven: false, allowed: [] }

/** Returns the upstream with an absolute URL and defaults, and reports what is wrong with it. */
export function resolveUpstream(
  written: WrittenUpstream,
  base: string,
  policy: UpstreamPolicy = WITHOUT_POLICY,
  report: ReportProblem = () => undefined,
  path = '',
): Upstream {
  const { id, model, when = 'unavailable', unsupported = [] } = written
  const { forwardAuthorization = false, continues = false } = written
  const parsed = URL.canParse(written.url, base) ? new URL(written.url, base) : null
  const problem = findUrlProblem(parsed, policy.scope)
  if (problem) report(`${path}.url`, `"${written.url}" ${problem}`)
  const conditions = [when].flat()
  if (conditions.includes('never') && conditions.length > 1)
    report(`${path}.when`, '"never" excludes all other conditions')
  if (conditions.includes('interrupted') && !continues)
    report(`${path}.when`, '"interrupted" needs `continues: true`, which says that the server can')
  const what = `its catalog comes from a URL, and the app does not allow ${written.url}`
  const isFree = parsed && isAllowed(parsed, policy)
  const refusal = isFree ? null : `${what}; pass it to serve({ upstreams })`
  const url = (parsed?.href ?? '').replace(/\/+$/, '')
  return { id, url, model, when: conditions, forwardAuthorization, continues, unsupported, refusal }
}

function findUrlProblem(url: URL | null, scope: string): string | undefined {
  if (!url || !/^https?:$/.test(url.protocol)) return 'is not an http or https URL'
  if (url.search || url.hash || url.username || url.password)
    return 'must not have a query, a fragment or credentials'
  // Some servers decode them, and would leave the folder that the app allows.
  if (/%2f|%5c/i.test(url.pathname)) return 'must not have an encoded slash'
  const isOwn = URL.canParse(scope) && isBelow(url, new URL('v1', scope).href)
  return isOwn ? 'is inside the /v1 that inorigin itself answers' : undefined
}

function isAllowed(url: URL, { scope, isGiven, allowed }: UpstreamPolicy): boolean {
  if (isGiven || (URL.canParse(scope) && new URL(scope).origin === url.origin)) return true
  return allowed.some((one) => isBelow(url, one))
}

/**
 * Returns the upstream that answers a request under the condition; `undefined` if none may. This is
 * the only way to one: a request with the route `local` never gets any.
 */
export const findUpstream = (
  { upstreams = [] }: RoutedEntry,
  condition: Condition,
  route?: Route,
): Upstream | undefined =>
  route === 'local'
    ? undefined
    : upstreams.find((upstream) => isUsable(upstream) && upstream.when.includes(condition))

/** Returns `true` if a request may be answered upstream under one of the conditions. */
export const mayAnswerUpstream = (
  entry: RoutedEntry,
  conditions: readonly Condition[],
  route?: Route,
): boolean => conditions.some((condition) => findUpstream(entry, condition, route) !== undefined)

const isUsable = (upstream: Upstream): boolean =>
  !upstream.when.includes('never') && upstream.refusal === null && !isOffline(upstream)

/** Returns `true` if the browser has no network and the server is on another machine. */
function isOffline({ url }: Upstream): boolean {
  const { onLine } = globalThis.navigator ?? { onLine: true }
  return onLine === false && !/^(localhost|127\.|\[::1\])/.test(new URL(url).hostname)
}

/**
 * Adds a reason for each upstream to the reasons for the local implementations, and returns the id
 * of the implementation that a request gets now; `null` if there is none.
 */
export function withUpstreamReasons(
  { upstreams = [] }: RoutedEntry,
  local: readonly Reason[],
): { chosen: string | null; reasons: Reason[] } {
  const chosenLocally = local.find(({ chosen }) => chosen)
  const always = findUpstream({ upstreams }, 'always')
  const used = always ?? (chosenLocally ? undefined : findUpstream({ upstreams }, 'unavailable'))
  const reasons = local.map((reason) =>
    reason.chosen && used
      ? { ...reason, chosen: false, why: `${reason.why}, but ${used.id} always answers` }
      : reason,
  )
  const chosen = used?.id ?? chosenLocally?.id ?? null
  const fields = { device: 'upstream', bytes: 0, milliseconds: null } as const
  const upstream = upstreams.map((one): Reason => {
    const why = describeUpstream(one, one === used, chosen ?? 'nothing')
    return { ...fields, id: one.id, chosen: one === used, why }
  })
  return { chosen, reasons: [...reasons, ...upstream] }
}

function describeUpstream(upstream: Upstream, isUsed: boolean, answering: string): string {
  const { when, refusal, url } = upstream
  if (refusal !== null) return refusal
  if (when.includes('never')) return 'its catalog entry says that it is never used'
  if (isOffline(upstream)) return 'it needs a network, and the browser is offline'
  if (!isUsed) return `${url} answers when: ${when.join(', ')}; now ${answering} answers`
  return when.includes('always')
    ? `${url} always answers`
    : `no implementation can run on this device, so ${url} answers`
}

// Checks a predictor's parameters for contradictions that a schema cannot express.

export type ReportProblem = (path: string, problem: string) => void

type Input = PredictorEntry['signature']['inputs'][number]

/**
 * Reports duplicate names, ranges and defaults that contradict, and bindings of unknown parameters.
 * Several values of an enumeration may share a name, since classes of data sets often do.
 */
export function validateParameters(
  { signature, implementations, states = [] }: PredictorEntry,
  path: string,
  report: ReportProblem,
): void {
  for (const side of ['inputs', 'outputs'] as const)
    reportDuplicates(signature[side], 'name', `${path}.signature.${side}`, report)
  for (const [index, input] of signature.inputs.entries())
    validateInput(input, `${path}.signature.inputs[${index}]`, report)
  for (const [index, { input, output }] of states.entries()) {
    const at = `${path}.states[${index}]`
    if (!signature.inputs.some(({ name }) => name === input))
      report(`${at}.input`, `there is no input ${input}`)
    if (!signature.outputs.some(({ name }) => name === output))
      report(`${at}.output`, `there is no output ${output}`)
  }
  const known = new Set([...signature.inputs, ...signature.outputs].map(({ name }) => name))
  for (const [index, { bindings = {}, resources }] of implementations.entries())
    for (const [name, { text, steps = [] }] of Object.entries(bindings)) {
      const at = `${path}.implementations[${index}].bindings[${JSON.stringify(name)}]`
      if (!known.has(name)) report(at, `there is no parameter ${name}`)
      const has = (file: string) => resources.some((resource) => resource.name === file)
      if (text && !has(text.tokenizer))
        report(`${at}.text.tokenizer`, `there is no resource ${text.tokenizer}`)
      for (const [step, each] of steps.entries()) {
        const file = 'labels' in each && each.labels && 'file' in each.labels && each.labels.file
        if (file && !has(file))
          report(`${at}.steps[${step}].labels.file`, `there is no resource ${file}`)
      }
    }
}

function validateInput(input: Input, path: string, report: ReportProblem): void {
  const { range, enumeration = [], defaultValue } = input
  reportDuplicates(enumeration, 'name', `${path}.enumeration`, report)
  const { min = -Infinity, max = Infinity } = range ?? {}
  if (min > max) return report(`${path}.range`, `min ${min} is above max ${max}, so no value fits`)
  if (defaultValue === undefined || defaultValue === null) return
  if (enumeration.length > 0) {
    if (!isMember(enumeration, defaultValue))
      report(`${path}.defaultValue`, 'is not a member of its enumeration')
  } else if (typeof defaultValue === 'number' && (defaultValue < min || defaultValue > max)) {
    report(`${path}.defaultValue`, `${defaultValue} is out of its range`)
  }
}

/**
 * Returns `true` if a value is a member, by name or value, with `true` equal to 1. For an array,
 * all items must be members. Tensors are not checked here, but when they are used.
 */
function isMember(members: NonNullable<Input['enumeration']>, given: unknown): boolean {
  if (Array.isArray(given)) return given.every((one) => isMember(members, one))
  if (typeof given === 'object') return true
  return members.some(({ name, value }) => name === given || toNumber(value) === toNumber(given))
}

const toNumber = (value: unknown): unknown => (typeof value === 'boolean' ? Number(value) : value)

/** Reports each item of which an earlier item of the list has the same value of `field`. */
export function reportDuplicates<Field extends string>(
  items: ReadonlyArray<Readonly<Record<Field, string>>>,
  field: Field,
  path: string,
  report: ReportProblem,
): void {
  const values = items.map((item) => item[field])
  for (const [index, value] of values.entries()) {
    const first = values.indexOf(value)
    if (first !== index)
      report(`${path}[${index}].${field}`, `${JSON.stringify(value)} is already ${path}[${first}]`)
  }
}
