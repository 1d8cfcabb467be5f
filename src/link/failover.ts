/**
 * Lets streams survive the death of their host. The asking side keeps the request. The next host
 * starts embeddings and predictions anew, because they have a single result. It continues a
 * generation: it computes the tokens that arrived as part of the prompt, sends their events again,
 * of which `delivery.ts` drops those that were delivered, and generates the rest.
 */
import { InoriginError } from '../error.ts'
import type { Caller, EventStream, Generation, GenerationRequest, Host } from '../types/index.ts'
import { createDelivery, type Delivery } from './delivery.ts'
import { isHostGone, isHostLost } from './link.ts'
import { MAX_FAILOVERS } from './rerun.ts'

/**
 * Maximum number of failovers of one stream by the code of an error after which the next request
 * loads the model again. A request that hangs its model would hang the next one for minutes, too.
 */
const MODEL_FAILOVERS: Readonly<Record<string, number>> = {
  worker_ended: MAX_FAILOVERS,
  model_unresponsive: 1,
  storage_damaged: 1,
  runtime_crashed: 1,
}

/** Returns the host with streams that continue on the next one when it dies. */
export function withFailover(host: Host): Host {
  return {
    ...host,
    generate: (request, caller) =>
      continueGeneration(host.generate, withSeed(request), caller, createDelivery()),
    followBackground: (id, skippedEvents, caller) =>
      followBackground(host, id, skippedEvents, caller),
    embed: (request, caller) =>
      openWithFailover(() => host.embed(request, caller), { canContinue: isHostGone }),
    createRemotePrediction: (request, caller) =>
      openWithFailover(() => host.createRemotePrediction(request, caller), {
        canContinue: isHostGone,
      }),
  }
}

/**
 * Generates what `delivery` lacks of a response, and continues when a host or its model dies. The
 * request must have a seed, so that each host makes the same choices.
 */
export function continueGeneration(
  generate: Host['generate'],
  request: GenerationRequest,
  caller: Caller,
  delivery: Delivery,
): Promise<Generation> {
  const isModelLost = createModelLossCheck()
  return openWithFailover(() => generate({ ...request, ...delivery.resumption() }, caller), {
    canContinue: (error) =>
      delivery.canContinue && (isHostGone(error) || isModelLost(error, delivery.hasStarted)),
    openElsewhere: (error) =>
      error instanceof InoriginError && error.mayContinueUpstream === true && delivery.interrupt(),
    select: delivery.select,
  })
}

/** Returns the request with a seed, because another host could not repeat choices without one. */
export function withSeed(request: GenerationRequest): GenerationRequest {
  const { sampling } = request
  return { ...request, sampling: { ...sampling, seed: sampling.seed ?? createSeed() } }
}

/** Follows a background response, which the next host continues by itself. */
function followBackground(host: Host, id: string, skippedEvents: number, caller: Caller) {
  let received = skippedEvents
  return openWithFailover(() => host.followBackground(id, received, caller), {
    canContinue: isHostGone,
    select(event) {
      if (event.type !== 'progress' && event.type !== 'heartbeat') received += 1
      return event
    },
  })
}

/** Events of a stream, of which the one of type `finish` is the last. */
interface TypedEvent {
  type: string
}

interface FailoverOptions<Event> {
  /** Returns `true` if the stream can be opened again after this error. */
  canContinue(error: unknown): boolean
  /**
   * Returns `true` if the stream, which cannot be opened again as it was, continues on another
   * server from now on. Default: never.
   */
  openElsewhere?: (error: unknown) => boolean
  /** Returns the part of an event that was not delivered; `null` if there is none. Default: all. */
  select?: (event: Event) => Event | null
}

/** Opens a stream, and opens it again while that is possible. */
async function openWithFailover<Event extends TypedEvent, Stream extends EventStream<Event>>(
  open: () => Promise<Stream & EventStream<Event>>,
  { canContinue, openElsewhere = () => false, select = (event) => event }: FailoverOptions<Event>,
): Promise<Stream> {
  let failovers = 0
  const mayRetry = (error: unknown, isPossible = canContinue(error)): boolean =>
    (isPossible && (failovers += 1) <= MAX_FAILOVERS) || openElsewhere(error)
  const reopen = async (): Promise<Stream> => {
    for (;;) {
      try {
        return await open()
      } catch (error) {
        // After a death, the election of the next host may take longer than one search for it.
        const isPossible = canContinue(error) || (failovers > 0 && isHostLost(error))
        if (!mayRetry(error, isPossible)) throw error
      }
    }
  }

  async function* read(first: Stream): AsyncGenerator<Event> {
    let isFinished = false
    for (let stream = first; ; stream = await reopen()) {
      try {
        for await (const event of stream.events as AsyncIterable<Event>) {
          if (isFinished) continue
          const selected = select(event)
          isFinished = event.type === 'finish'
          if (selected !== null) yield selected
        }
        return
      } catch (error) {
        if (isFinished) return
        if (!mayRetry(error)) throw error
      }
    }
  }
  const first = await reopen()
  return { ...first, events: read(first) }
}

/**
 * Returns a check of the errors of one stream: `true` if the model may be loaded again after it.
 * Before the start, the load may have failed, and would fail again. A worker that ended then gets one
 * more attempt, because it may have ended between the load and the start.
 */
function createModelLossCheck(): (error: unknown, hasStarted: boolean) => boolean {
  const counts = new Map<string, number>()
  return (error, hasStarted) => {
    const { code = '' } = InoriginError.from(error)
    const count = (counts.get(code) ?? 0) + 1
    counts.set(code, count)
    if (!hasStarted) return code === 'worker_ended' && count === 1
    return count <= (MODEL_FAILOVERS[code] ?? 0)
  }
}

const createSeed = (): number => crypto.getRandomValues(new Uint32Array(1))[0] as number
