/** Creates the constraints of a model from its tokenizer. */
import type { Constraint, ConstraintCompiler, Matcher } from '../../constraint/index.ts'
import type { ErrorCode } from '../../error-codes.ts'
import { type ErrorKind, InoriginError } from '../../error.ts'
import type { ModelConfig } from '../text/config.ts'
import { listTokenBytesInTasks, readVocabulary } from '../text/vocabulary.ts'
import { createYielder } from './yielder.ts'

/** Compiles the constraints of one model. Errors are those of requests. */
export interface ModelConstraints {
  /**
   * Starts a text that must satisfy the constraint. Compiles the constraint if it is not cached.
   * Rejects with `invalid_request` if it is not supported.
   */
  open(constraint: Constraint, signal: AbortSignal): Promise<Matcher>
  close(): void
}

/**
 * Returns the constraints of a model. Loads their engine from the folder at the first `open`, since
 * most answers have no constraint.
 */
export function createModelConstraints(config: ModelConfig, folder: string): ModelConstraints {
  let created: Promise<ConstraintCompiler> | null = null

  const create = async (): Promise<ConstraintCompiler> => {
    const { createConstraintCompiler } = await import('../../constraint/index.ts')
    const { tokenizer, tokenizerConfig, endTokens } = config
    const vocabulary = readVocabulary(tokenizer, tokenizerConfig)
    const yielder = createYielder()
    const bytes = await listTokenBytesInTasks(tokenizer, vocabulary, yielder.next)
    yielder.close()
    const { names, special } = vocabulary
    return createConstraintCompiler({
      bytes,
      special: new Map([...special].map((id) => [names[id] ?? '', id])),
      endTokens: [...endTokens],
      wasm: new URL('llguidance.wasm', folder),
      createWorker: () => {
        const script = new URL('vocabulary-worker.js', folder)
        return new Worker(script, { type: 'module', name: 'inorigin vocabulary' })
      },
    })
  }

  const compiler = (): Promise<ConstraintCompiler> => {
    created ??= create().catch((error: unknown) => {
      created = null
      throw error
    })
    return created
  }

  return {
    async open(constraint, signal) {
      try {
        const matcher = await (await compiler()).open(constraint, signal)
        return withRequestErrors(matcher)
      } catch (thrown) {
        throw toRequestError(thrown)
      }
    },
    close: () => void created?.then((each) => each.close()),
  }
}

/** Returns the matcher with the errors of requests. */
function withRequestErrors(matcher: Matcher): Matcher {
  const attempt = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (thrown) {
      throw toRequestError(thrown)
    }
  }
  return {
    loosened: matcher.loosened,
    mask: () => attempt(() => matcher.mask()),
    accept: (token) => attempt(() => matcher.accept(token)),
    forced: () => attempt(() => matcher.forced()),
    canExtend: (token) => attempt(() => matcher.canExtend(token)),
    close: () => matcher.close(),
  }
}

/** Fields of a `ConstraintError`, whose class is loaded with the compiler. */
interface ConstraintFault {
  message: string
  code: string
  path?: string
  keyword?: string
}

/** Kinds of the errors that are not the fault of a request. */
const KINDS: Readonly<Record<string, ErrorKind>> = {
  constraint_trap: 'internal',
  constraint_missing: 'unavailable',
}

function toRequestError(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || thrown.name !== 'ConstraintError') {
    return InoriginError.from(thrown)
  }
  const { message, code, path, keyword } = thrown as unknown as ConstraintFault
  const isSchema = code === 'unsupported_constraint' && path !== undefined
  return new InoriginError(KINDS[code] ?? 'invalid_request', message, {
    code: isSchema ? 'unsupported_schema' : (code as ErrorCode),
    cause: thrown,
    ...(path && { param: path }),
    ...((path ?? keyword) && { details: { path, keyword } }),
  })
}
