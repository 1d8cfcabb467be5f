/** Splits rendered text at structural tokens, and tokenizes the sections. */
import type { PromptImage } from '../images.ts'
import { expandImage } from './image-placeholders.ts'
import { createPlainTokenizer } from './plain-tokenizer.ts'
import type { AddedToken, TokenizerFile } from './tokenizer-file.ts'
import { createWordMatcher } from './word-matcher.ts'

/** A part of a text: a structural token, or the text between two. */
export interface Section {
  /** Position in the text. */
  at: number
  text: string
  /** Token id; `null` for text. */
  id: number | null
}

interface SectionTokenizer {
  split(text: string): Section[]
  /** Returns the text of a section after the tokenizer's normalization. */
  normalize(text: string): string
  /** Tokenizes text of the engine itself, in which special tokens count. */
  encodeTrusted(text: string): number[]
  /**
   * Returns the tokens of all sections, with images in their places. `starts` has the number of
   * tokens before each section.
   */
  join(
    sections: readonly Section[],
    images: readonly PromptImage[],
  ): { tokens: number[]; starts: number[] }
}

/**
 * Creates a tokenizer of sections. Text may become one of `textTokens`, but never a structural
 * token. `placeholder` is the text of the token that stands for an image. Changes `file`.
 */
export function createSectionTokenizer(
  file: TokenizerFile,
  config: object,
  structuralTokens: readonly AddedToken[],
  textTokens: readonly AddedToken[],
  placeholder: string | undefined,
): SectionTokenizer {
  const plain = createPlainTokenizer(file, config, structuralTokens, textTokens)
  const matcher = createWordMatcher(structuralTokens.map(({ content }) => content))
  const byText = new Map(structuralTokens.map((token) => [token.content, token]))

  const split = (text: string): Section[] => toSections(matcher.split(text), byText)

  const toTokens = ({ text, id }: Section, first: boolean): number[] => {
    if (id !== null) return [id]
    return text === '' ? [] : plain.encode(text, first)
  }

  const encodeTrusted = (text: string): number[] =>
    split(text).flatMap((section) => toTokens(section, false))

  return {
    split,
    normalize: plain.normalize,
    encodeTrusted,
    join(sections, images) {
      const tokens: number[] = []
      let imagesBefore = 0
      const starts = sections.map((section, index) => {
        const tokensBefore = tokens.length
        const isPlace = section.id !== null && section.text === placeholder
        const image = isPlace ? images[imagesBefore++] : undefined
        const added = image ? expandImage(image, encodeTrusted) : toTokens(section, index === 0)
        for (const token of added) tokens.push(token)
        return tokensBefore
      })
      return { tokens, starts }
    },
  }
}

/** Returns the sections of these texts, which are structural tokens and the text between them. */
function toSections(texts: readonly string[], byText: ReadonlyMap<string, AddedToken>): Section[] {
  let at = 0
  return texts.map((section, index) => {
    const begin = at
    at += section.length
    const token = byText.get(section)
    if (token) return { at: begin, text: section, id: token.id }
    let strippedText = section
    if (byText.get(texts[index + 1] ?? '')?.lstrip) strippedText = strippedText.trimEnd()
    if (byText.get(texts[index - 1] ?? '')?.rstrip) strippedText = strippedText.trimStart()
    return { at: begin, text: strippedText, id: null }
  })
}
