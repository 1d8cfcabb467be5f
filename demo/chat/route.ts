/**
 * Chooses who answers a question. The guide knows inorigin, and little else; SmolLM2 writes English, and does
 * not know inorigin. Through `/v1`, each model answers what it is asked.
 */
import type { Server, Tag } from '../../src/index.ts'
import { findSources, type Source } from '../documentation.ts'
import { keptModel } from '../kept.ts'
import { GUIDE, type ListedModel } from '../listing.ts'
import { SMOLLM2 } from '../smollm2.ts'
import { AnswerError } from '../wire/answer.ts'
import type { Settings } from '../wire/style.ts'

/** Code of the error of a question that the guide is not asked. */
export const NOT_DOCUMENTED = 'not_documented'

interface Asked {
  /** The model that is selected. */
  chosen: ListedModel
  question: string
  images: readonly string[]
  settings: Settings
  hasTools: boolean
}

/** Model that answers, and the pages that the question is about if the page chose the guide for them. */
export interface Route {
  tag: Tag
  sources?: readonly Source[]
}

/**
 * Resolves with who answers. Rejects with `not_documented` if that would be the guide, which the visitor
 * did not choose, and the documentation has nothing on the question.
 */
export async function routeQuestion(server: Server, asked: Asked): Promise<Route> {
  const { chosen, question } = asked
  if (!isRouted(asked)) return { tag: chosen.id }
  // The question can be answered without links to pages.
  const sources = await findSources(server, question).catch(() => null)
  if (!sources) return { tag: chosen.id }
  if (sources.length > 0 && (await canAsk(server, GUIDE))) return { tag: GUIDE, sources }
  if (sources.length > 0 || chosen.id !== GUIDE) return { tag: chosen.id }
  throw new AnswerError(
    'The documentation has nothing on this, so the guide was not asked: it knows inorigin, a few common ' +
      'facts and small sums.',
    0,
    NOT_DOCUMENTED,
  )
}

/** Resolves with `true` if the files of a model are on this device, or can be downloaded. */
async function canAsk(server: Server, tag: Tag): Promise<boolean> {
  if (navigator.onLine) return true
  const states = await server.models.list()
  return states.some((state) => state.tag === tag && state.status !== 'remote')
}

/** Returns `true` if the page may choose: for a plain question, and if the visitor did not choose the guide. */
function isRouted({ chosen, images, settings, hasTools }: Asked): boolean {
  const isPlain = images.length === 0 && !hasTools && !settings.schema && !settings.system
  return isPlain && (chosen.id === SMOLLM2 || (chosen.id === GUIDE && keptModel() !== GUIDE))
}
