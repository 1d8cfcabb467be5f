/** A conversation as a tree: each turn follows another one, and turns with one parent are branches. */
import type { Source } from '../documentation.ts'
import type { ToolRound } from '../tools/types.ts'
import type { Facts } from '../wire/summary.ts'

/** An answer as it is kept. */
export interface KeptAnswer extends Facts {
  text: string
  reasoning?: string
  /** Rounds of tool calls before the text. */
  rounds?: readonly ToolRound[]
  /** Pages of the documentation for which the page chose the model. */
  sources?: readonly Source[]
  model: string
  /** Path of the endpoint. */
  url: string
}

/** A question, and its answer once there is one. */
export interface Turn {
  id: string
  /** The turn before; `null` for a first one. */
  parent: string | null
  created: number
  /** Time of the last change, in milliseconds. */
  changed: number
  question: string
  /** Data URLs. */
  images: readonly string[]
  answer?: KeptAnswer
  /** `true` if the user stopped the answer, a reload did, or its continuation failed. */
  stopped?: boolean
  /** Message of the error that ended the answer. */
  error?: string
}

export interface Conversation {
  id: string
  title: string
  created: number
  changed: number
  turns: Turn[]
  /** The chosen branch after a turn, by the id of that turn; of the first turns by `ROOT`. */
  chosen: Record<string, string>
  /** Ids of deleted turns, so that another tab does not bring them back. */
  deleted: string[]
}

const ROOT = 'root'

/** Longest title that is made of a question. */
const TITLE_CHARACTERS = 80

/** Creates an empty conversation. */
export function createConversation(): Conversation {
  const now = Date.now()
  const id = crypto.randomUUID()
  return { id, title: '', created: now, changed: now, turns: [], chosen: {}, deleted: [] }
}

/** Adds a turn, and chooses its branch. The first question is the title. */
export function addTurn(
  conversation: Conversation,
  { parent, question, images }: Pick<Turn, 'parent' | 'question' | 'images'>,
): Turn {
  const now = Date.now()
  const id = crypto.randomUUID()
  const turn: Turn = { id, parent, created: now, changed: now, question, images }
  conversation.turns.push(turn)
  conversation.title ||= toTitle(question)
  choose(conversation, turn)
  return turn
}

/** Returns a title of one line. */
function toTitle(question: string): string {
  const line = question.trim().replaceAll(/\s+/g, ' ')
  return line.length > TITLE_CHARACTERS ? `${line.slice(0, TITLE_CHARACTERS - 1)}…` : line
}

/** Chooses the branch of a turn. */
export function choose(conversation: Conversation, turn: Turn): void {
  conversation.chosen[turn.parent ?? ROOT] = turn.id
  touch(conversation)
}

/** Notes that a turn, or the conversation, has changed. */
export function touch(conversation: Conversation, turn?: Turn): void {
  conversation.changed = Date.now()
  if (turn) turn.changed = conversation.changed
}

/** Returns the branches that a turn is one of, oldest first. */
export function branchesOf({ turns }: Conversation, { parent }: Turn): Turn[] {
  return turns.filter((turn) => turn.parent === parent)
}

/** Returns the turns of the chosen branches, from the first one. */
export function pathOf({ turns, chosen }: Conversation): Turn[] {
  const path: Turn[] = []
  const left = new Set(turns)
  for (;;) {
    const parent = path.at(-1)?.id ?? null
    const branches = [...left].filter((turn) => turn.parent === parent)
    const next = branches.find(({ id }) => id === chosen[parent ?? ROOT]) ?? branches.at(-1)
    if (!next) return path
    // A damaged tree may have a circle.
    left.delete(next)
    path.push(next)
  }
}

/** Returns the turns before a turn, from the first one. */
export function turnsBefore({ turns }: Conversation, turn: Turn): Turn[] {
  const byId = new Map(turns.map((one) => [one.id, one]))
  const before: Turn[] = []
  let at = turn.parent === null ? undefined : byId.get(turn.parent)
  while (at && !before.includes(at)) {
    before.unshift(at)
    at = at.parent === null ? undefined : byId.get(at.parent)
  }
  return before
}

/** Removes a turn. Those after it follow the turn before it. */
export function removeTurn(conversation: Conversation, turn: Turn): void {
  const { chosen } = conversation
  const branches = branchesOf(conversation, turn)
  const next = chosen[turn.id]
  conversation.turns = conversation.turns.filter((one) => one !== turn)
  for (const one of conversation.turns) {
    if (one.parent !== turn.id) continue
    one.parent = turn.parent
    one.changed = Date.now()
  }
  delete chosen[turn.id]
  const at = branches.indexOf(turn)
  const neighbor = next ?? (branches[at - 1] ?? branches[at + 1])?.id
  if (neighbor === undefined) delete chosen[turn.parent ?? ROOT]
  else chosen[turn.parent ?? ROOT] = neighbor
  conversation.deleted.push(turn.id)
  touch(conversation)
}

/** Returns a stored conversation with those turns of `own` that are the same in it. */
export function takeOver(stored: Conversation, own: Conversation): Conversation {
  const known = new Map(own.turns.map((turn) => [turn.id, turn]))
  const turns = stored.turns.map((turn) => {
    const same = known.get(turn.id)
    return same?.changed === turn.changed ? same : turn
  })
  return { ...stored, turns }
}

/**
 * Returns one conversation of two copies that tabs have changed apart: all turns of both, except
 * deleted ones, each as it was changed last.
 */
export function merge(stored: Conversation, own: Conversation): Conversation {
  const deleted = [...new Set([...stored.deleted, ...own.deleted])]
  const turns = new Map<string, Turn>()
  for (const turn of [...stored.turns, ...own.turns]) {
    const known = turns.get(turn.id)
    if (!deleted.includes(turn.id) && (known?.changed ?? 0) <= turn.changed) {
      turns.set(turn.id, turn)
    }
  }
  const [older, newer] = stored.changed <= own.changed ? [stored, own] : [own, stored]
  return {
    ...newer,
    turns: [...turns.values()].toSorted((one, other) => one.created - other.created),
    chosen: { ...older.chosen, ...newer.chosen },
    deleted,
  }
}
