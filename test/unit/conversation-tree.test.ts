/** Conversations of the playground as trees: branches, deletion, and copies that tabs change apart. */
import { expect, test } from 'vitest'
import {
  addTurn,
  branchesOf,
  choose,
  createConversation,
  merge,
  pathOf,
  removeTurn,
  touch,
  turnsBefore,
  type Conversation,
  type Turn,
} from '../../demo/chat/tree.ts'

function add(conversation: Conversation, question: string, parent?: Turn): Turn {
  return addTurn(conversation, { parent: parent?.id ?? null, question, images: [] })
}

const path = (conversation: Conversation) => pathOf(conversation).map(({ question }) => question)

test('a turn with the parent of another one is a branch, and the chosen one is shown', () => {
  const conversation = createConversation()
  const one = add(conversation, 'one')
  add(conversation, 'two', one)
  const other = add(conversation, 'other')
  expect(path(conversation)).toEqual(['other'])
  choose(conversation, one)
  expect(path(conversation)).toEqual(['one', 'two'])
  expect(branchesOf(conversation, one)).toEqual([one, other])
  expect(conversation.title).toBe('one')
})

test('the turns before one lead to it, whatever branch is chosen', () => {
  const conversation = createConversation()
  const one = add(conversation, 'one')
  const two = add(conversation, 'two', one)
  add(conversation, 'other')
  expect(turnsBefore(conversation, two)).toEqual([one])
})

test('what follows a deleted turn follows the one before it', () => {
  const conversation = createConversation()
  const one = add(conversation, 'one')
  const two = add(conversation, 'two', one)
  add(conversation, 'three', two)
  removeTurn(conversation, two)
  expect(path(conversation)).toEqual(['one', 'three'])
})

test('after the deletion of a branch, a neighbor is shown', () => {
  const conversation = createConversation()
  add(conversation, 'one')
  const other = add(conversation, 'other')
  removeTurn(conversation, other)
  expect(path(conversation)).toEqual(['one'])
})

test('a circle ends', () => {
  const conversation = createConversation()
  const one = add(conversation, 'one')
  const two = add(conversation, 'two', one)
  two.parent = two.id
  expect(path(conversation)).toEqual(['one'])
  expect(turnsBefore(conversation, two)).toEqual([two])
})

test('two copies keep the turns of both, and what was deleted in one stays deleted', () => {
  const first = createConversation()
  const one = add(first, 'one')
  const two = add(first, 'two', one)
  const second = structuredClone(first)
  removeTurn(first, two)
  add(first, 'from the first', one)
  const [copy] = second.turns
  if (!copy) throw new Error('The copy has no turn.')
  add(second, 'from the second', copy)
  const both = merge(first, second)
  expect(both.turns.map(({ question }) => question).toSorted()).toEqual([
    'from the first',
    'from the second',
    'one',
  ])
})

test('of a turn that both copies have, the one that was changed last is kept', () => {
  const first = createConversation()
  const one = add(first, 'one')
  const second = structuredClone(first)
  one.question = 'changed'
  touch(first, one)
  one.changed += 1
  expect(merge(first, second).turns[0]?.question).toBe('changed')
  expect(merge(second, first).turns[0]?.question).toBe('changed')
})
