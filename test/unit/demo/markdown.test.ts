/** Answers as trees: what Markdown becomes, what it never becomes, and how it grows. */
import { expect, test } from 'vitest'
import { prepareCode } from '../../../demo/markdown/code.ts'
import { createDocument } from '../../../demo/markdown/document.ts'
import { prepareMath } from '../../../demo/markdown/math.ts'
import { safeHref, type RenderNode } from '../../../demo/markdown/nodes.ts'
import { runs } from '../../support/runs.ts'

/** Writes a tree as tags, for comparison. */
function toTags(node: RenderNode): string {
  if (typeof node === 'string') return node
  const attributes = Object.entries(node.attributes ?? {})
    .map(([name, value]) => ` ${name}=${value}`)
    .join('')
  return `<${node.tag}${attributes}>${(node.children ?? []).map(toTags).join('')}</${node.tag}>`
}

async function render(text: string): Promise<string> {
  await Promise.all([prepareMath(text), prepareCode(text)])
  const document = createDocument()
  document.append(text)
  return document
    .render(true)
    .blocks.map(([, nodes]) => nodes.map(toTags).join(''))
    .join('\n')
}

test.each([
  ['a **b** *c* ~~d~~ `e`', '<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e</code></p>'],
  ['# One\n\n###### Six', '<h2>One</h2>\n<h6>Six</h6>'],
  ['- a\n- [x] b', '<ul><li>a</li><li>☑ b</li></ul>'],
  ['3. a\n4. b', '<ol start=3><li>a</li><li>b</li></ol>'],
  ['[a](https://x.test/?q=1)', '<p><a href=https://x.test/?q=1>a</a></p>'],
  ['[a][b]\n\n[b]: https://x.test/', '<p><a href=https://x.test/>a</a></p>\n'],
  ['![cat](https://x.test/c.png)', '<p><a href=https://x.test/c.png>[cat]</a></p>'],
  ['<b>x</b>', '<p><b>x</b></p>'],
  ['it costs $5 and $10.', '<p>it costs $5 and $10.</p>'],
  ['x &lt;b&gt; &copy;', '<p>x <b> ©</p>'],
])('%j is shown as %j', async (markdown, tags) => {
  expect(await render(markdown)).toBe(tags)
})

test('a table keeps the alignment of its columns', async () => {
  expect(await render('| a | b |\n|:-:|--:|\n| 1 | 2 |')).toBe(
    '<table><thead><tr><th class=align-center>a</th><th class=align-right>b</th></tr></thead>' +
      '<tbody><tr><td class=align-center>1</td><td class=align-right>2</td></tr></tbody></table>',
  )
})

test('code is colored in a language that is known, and text in another', async () => {
  expect(await render('```js\nconst a = 1\n```')).toBe(
    '<code language=js><span class=hljs-keyword>const</span> a = ' +
      '<span class=hljs-number>1</span></code>',
  )
  expect(await render('```nonsense\n<b>\n```')).toBe('<code language=nonsense><b></code>')
})

test.each(['$x^2$', '\\(x^2\\)'])('%s becomes MathML', async (markdown) => {
  expect(await render(`so ${markdown} is`)).toBe(
    '<p>so <math><msup><mi>x</mi><mn>2</mn></msup></math> is</p>',
  )
})

test.each(['$$\n\\frac12\n$$', '\\[\n\\frac12\n\\]'])(
  '%j is a formula of its own',
  async (markdown) => {
    expect(await render(markdown)).toContain(
      '<math display=block><mfrac><mn>1</mn><mn>2</mn></mfrac>',
    )
  },
)

test('brackets in code are no formula', async () => {
  expect(await render('`\\(x\\)`')).toBe('<p><code>\\(x\\)</code></p>')
  expect(await render('```\n\\[x\\]\n```')).toBe('<code language=>\\[x\\]</code>')
})

test('a formula that cannot be parsed shows its source', async () => {
  expect(await render('$\\href{javascript:alert(1)}{x}$')).toBe(
    '<p><code>\\href{javascript:alert(1)}{x}</code></p>',
  )
  expect(await render(`$${'{'.repeat(3_000)}$`)).toContain('<code>{{{')
})

test.each([
  'javascript:alert(1)',
  ' javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'java\tscript:alert(1)',
  'data:text/html,x',
  'vbscript:x',
  '//x.test/',
  '/v1/models',
  'blob:https://x.test/1',
])('%s is no address of a link', (address) => {
  expect(safeHref(address)).toBeUndefined()
})

test('an address of thousands of characters is none of a link', () => {
  expect(safeHref(`https://x.test/${'x'.repeat(1_000)}`)).toBeDefined()
  expect(safeHref(`https://x.test/${'x'.repeat(3_000)}`)).toBeUndefined()
})

test('an answer that grows by letters becomes the same as one that comes whole', async () => {
  const text =
    '# Title\n\nText with [link][later] and `code`.\n\n1. one\n\n2. two\n   - inner\n\n' +
    '```js\nlet a = 1\n\nlet b\n```\n\n| a | b |\n|---|---|\n| 1 | $x$ |\n\n> quote\n\n' +
    'End  \nof it\n\n[later]: https://x.test/\n'
  await Promise.all([prepareMath(text), prepareCode(text)])
  const document = createDocument()
  const blocks: string[] = []
  for (const [at, letter] of [...text].entries()) {
    document.append(letter)
    const { blocks: changed, count } = document.render(at === text.length - 1)
    for (const [index, nodes] of changed) blocks[index] = nodes.map(toTags).join('')
    blocks.length = count
  }
  expect(blocks.join('\n')).toBe(await render(text))
})

test.each([
  ['See [a].\n\nOne.\n\nTwo.\n\nThree.\n\n[a]: https://x.test/', '<a href=https://x.test/>a</a>'],
  ['See [^1].\n\nOne.\n\nTwo.\n\nThree.\n\n[^1]: Note', '<sup>1</sup>'],
])('a last line of %j defines what its first paragraph names', (text, tags) => {
  const growing = createDocument()
  let first = ''
  for (const letter of text) {
    growing.append(letter)
    growing.render(false)
  }
  for (const [at, nodes] of growing.render(true).blocks) {
    if (at === 0) first = nodes.map(toTags).join('')
  }
  expect(first).toContain(tags)
})

test('an answer that defines nothing is not parsed again at its end', () => {
  const growing = createDocument()
  const paragraphs = 'One paragraph.\n\n'.repeat(20)
  growing.append(paragraphs)
  growing.render(false)
  expect(growing.append('The end.').length).toBeLessThan(60)
  const { blocks, count } = growing.render(true)
  expect(blocks.map(([at]) => at)).toEqual([20])
  expect(count).toBe(21)
})

test('only what is not settled is parsed again', () => {
  const document = createDocument()
  for (let count = 0; count < 50; count += 1) {
    expect(document.append(`Paragraph ${count}.\n\n`).length).toBeLessThan(60)
    const { blocks } = document.render(false)
    expect(blocks.map(([index]) => index)).toEqual([count])
  }
})

const MANY = runs(2_000, 10_000)

test.each([
  ['quotes', '> '.repeat(MANY)],
  ['brackets', '['.repeat(MANY)],
  ['images', '!['.repeat(MANY)],
  ['lists', '- '.repeat(MANY)],
  ['emphasis', '*a **a '.repeat(MANY / 2)],
  ['backticks', '`a``b'.repeat(MANY / 2)],
  ['a table', `| a |\n|---|\n${'| b |\n'.repeat(MANY)}`],
  ['links', '[a](b'.repeat(MANY / 2)],
])('thousands of %s become a small tree or text', async (_name, text) => {
  await prepareCode(text)
  const document = createDocument()
  document.append(text)
  const { blocks } = document.render(true)
  const count = (node: RenderNode): number =>
    typeof node === 'string'
      ? 1
      : 1 + (node.children ?? []).reduce((sum, one) => sum + count(one), 0)
  const depth = (node: RenderNode): number =>
    typeof node === 'string' ? 0 : 1 + Math.max(0, ...(node.children ?? []).map(depth))
  for (const [, nodes] of blocks) {
    expect(Math.max(0, ...nodes.map(depth))).toBeLessThan(70)
    expect(nodes.reduce((sum, node) => sum + count(node), 0)).toBeLessThan(13_000)
  }
})
