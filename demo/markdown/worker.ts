/**
 * Worker that parses the answers, so that no answer can stop the page: the page ends a worker that
 * takes too long.
 */
import { prepareCode } from './code.ts'
import { createDocument, type Changes, type MarkdownDocument } from './document.ts'
import { prepareMath } from './math.ts'

/** Text that an answer has grown by. */
export interface Growth {
  answer: number
  text: string
  isWhole: boolean
}

export interface Rendered extends Changes {
  type: 'rendered'
  answer: number
}

/** Says that the libraries are loaded, so that the page measures only the time of the parser. */
export interface Began {
  type: 'began'
}

const documents = new Map<number, MarkdownDocument>()

async function render({ answer, text, isWhole }: Growth): Promise<Rendered> {
  const known = documents.get(answer)
  const document = known ?? createDocument()
  if (isWhole) documents.delete(answer)
  else documents.set(answer, document)
  const open = document.append(text)
  await Promise.all([prepareMath(open), prepareCode(open)])
  self.postMessage({ type: 'began' } satisfies Began)
  return { type: 'rendered', answer, ...document.render(isWhole) }
}

let turn = Promise.resolve()

self.addEventListener('message', ({ data }: MessageEvent<Growth>) => {
  // An error ends this worker for the page, which then shows the source.
  turn = turn.then(() => render(data)).then((rendered) => self.postMessage(rendered))
  turn.catch(reportError)
})
