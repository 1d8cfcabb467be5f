/** Conversations of the playground: branches, deletion, copies that tabs change apart, files and links. */
import { describe, expect, test, vi } from 'vitest'
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
} from '../../../demo/chat/tree.ts'
import { parseJson, toFileName, toJson, toMarkdown } from '../../../demo/history/exchange-format.ts'
import { fromFragment, toLink } from '../../../demo/history/link.ts'

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

describe('a conversation as a file', () => {
  const PNG = 'data:image/png;base64,AA=='

  function createAnswered(): Conversation {
    const conversation = createConversation()
    const turn = add(conversation, 'One?')
    Object.assign(turn, { images: [PNG], answer: answerOf('Answer 1.') })
    Object.assign(add(conversation, 'Uno?'), { answer: answerOf('Answer 2.') })
    return conversation
  }

  const answerOf = (text: string) => ({ text, model: '@a/b', url: '/v1/messages', finish: 'stop' })

  /** Returns a file whose one turn has these fields. */
  function fileWith(fields: object): string {
    const conversation = createConversation()
    Object.assign(add(conversation, 'Q'), fields)
    return toJson([conversation])
  }

  test('is read again as it was written', () => {
    const conversation = createAnswered()
    expect(parseJson(toJson([conversation]))).toEqual([conversation])
  })

  test('has its chosen branch as Markdown', () => {
    vi.stubGlobal('location', { href: 'https://site.test/' })
    const conversation = createAnswered()
    expect(toMarkdown(conversation)).toBe('# One?\n\n> Uno?\n\nAnswer 2.\n\n_@a/b_\n')
    choose(conversation, conversation.turns[0] as Turn)
    expect(toMarkdown(conversation)).toContain(
      '> One?\n\n(1 image is not part of this file.)\n\nAnswer 1.',
    )
    expect([toFileName('One?', 'md'), toFileName('?!', 'md')]).toEqual([
      'One.md',
      'conversation.md',
    ])
  })

  test.each([
    ['text', 'hello', 'The file is not JSON'],
    [
      'JSON of something else',
      '{"a":1}',
      'The file is not an export of this playground: format is',
    ],
    [
      'an image elsewhere',
      fileWith({ images: ['https://attacker.test/a.png'] }),
      'conversations.0.turns.0.images.0 is wrong.',
    ],
    ['a question that is a number', fileWith({ question: 7 }), 'turns.0.question is wrong.'],
    [
      'another address of the answer',
      fileWith({ answer: { ...answerOf('a'), url: 'https://attacker.test/' } }),
      'url is wrong.',
    ],
  ])('is refused with %s', (_what, text, says) => {
    expect(() => parseJson(text)).toThrow(says)
  })

  test('travels as a link, without other branches and images, under a new id', async () => {
    const conversation = createAnswered()
    const link = await toLink(conversation, 'https://site.test/?device=wasm')
    expect(link).toMatch(/^https:\/\/site\.test\/\?device=wasm#chat=[\w-]+$/)
    const received = await fromFragment(new URL(link).hash)
    expect(received?.turns.map(({ question, answer }) => [question, answer?.text])).toEqual([
      ['Uno?', 'Answer 2.'],
    ])
    expect(received?.id).not.toBe(conversation.id)
    expect(await fromFragment('#other')).toBeUndefined()
  })

  test('is refused as a link that is too long, or damaged', async () => {
    const conversation = createConversation()
    add(conversation, Array.from({ length: 20_000 }, () => crypto.randomUUID()).join(''))
    await expect(toLink(conversation, 'https://site.test/')).rejects.toThrow('too long for a link')
    const damaged = 'The link holds no conversation that can be read'
    await expect(fromFragment('#chat=damaged')).rejects.toThrow(damaged)
    await expect(fromFragment(`#chat=${'A'.repeat(20_000)}`)).rejects.toThrow(`${damaged}: it is`)
  })
})
