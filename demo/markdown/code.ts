/** Source code to colored tokens, as a tree. The library is loaded with the first code block. */
import type { RenderNode } from './nodes.ts'

/** Longest code that is colored. */
const MAX_CODE_CHARACTERS = 20_000

/** A node of the library's tree. */
interface Token {
  type: string
  value?: string
  properties?: { className?: unknown }
  children?: readonly Token[]
}

let lowlight: (typeof import('./languages.ts'))['lowlight'] | undefined

/** Loads the library if the text may have a code block. */
export async function prepareCode(text: string): Promise<void> {
  if (!lowlight && /```|~~~/.test(text)) lowlight = (await import('./languages.ts')).lowlight
}

/** Returns the tokens of code; one text if the language is unknown. */
export function highlight(code: string, language: string): RenderNode[] {
  const name = language.toLowerCase()
  if (!lowlight?.registered(name) || code.length > MAX_CODE_CHARACTERS) return [code]
  const { children } = lowlight.highlight(name, code) as Token
  return (children ?? []).flatMap(toNodes)
}

function toNodes({ type, value, properties, children = [] }: Token): RenderNode[] {
  if (type === 'text') return [value ?? '']
  const { className } = properties ?? {}
  // The library also writes classes such as `function_`, which no style here uses.
  const [name] = Array.isArray(className) ? className.map(String) : []
  const attributes = name?.startsWith('hljs-') ? { class: name } : undefined
  return [{ tag: 'span', attributes, children: children.flatMap(toNodes) }]
}
