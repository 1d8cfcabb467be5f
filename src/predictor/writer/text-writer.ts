/** Writes the text of a prediction, token by token, from what an encoder made of its inputs. */
import type { TokenRules } from '../../catalog/decoder-schema.ts'
import { throwInvalidInput } from '../../values/input-errors.ts'
import type { BoundSignature } from '../bind.ts'
import type { ParsedInput } from '../parse-inputs.ts'
import type { GraphRun } from '../run-graph.ts'
import { readTexts } from '../tensor-codec.ts'
import type { RawTensor } from '../tensor.ts'
import { type TextTensorSpec, type TextTokenizer, tokenizeAll } from '../text.ts'
import { DecoderSession, type DecoderSetup } from './decoder-session.ts'
import { readValue } from './read-value.ts'
import { writeTokens } from './write-tokens.ts'

type Checked = ReadonlyMap<string, ParsedInput>

/** Parts of a predictor that its decoder needs. */
export interface WriterSetup extends DecoderSetup {
  bound: BoundSignature
  tokenizer: TextTokenizer
}

/** Decoder of one predictor with its tokenizer. It writes the best token each time. */
export class TextWriter {
  readonly #setup: WriterSetup
  readonly #session: DecoderSession

  /** Loads the decoder. Rejects with `unavailable` if it cannot be used. */
  static async open(setup: WriterSetup): Promise<TextWriter> {
    return new TextWriter(setup, await DecoderSession.openFor(setup))
  }

  private constructor(setup: WriterSetup, session: DecoderSession) {
    this.#setup = setup
    this.#session = session
  }

  /** Returns the inputs with tokens in place of texts, of which tasks and languages change some. */
  prepare(checked: Checked): Checked {
    const found = this.#setup.bound.inputs.find(({ spec }) => spec.text)
    const value = found && checked.get(found.parameter.name)
    if (!found?.spec.text || !value || value.form === 'tokens') return checked
    const { name } = found.parameter
    const rows = this.#tokenize(found.spec.text, value, `inputs.${name}`, checked)
    return new Map(checked).set(name, { form: 'tokens', rows })
  }

  /**
   * Resolves with a text for each row of what the encoder returned. `pause` is called before each token,
   * and rejects to end the writing. `report` is called after each token of a single text, with a function
   * that returns the text so far.
   */
  async write(
    run: GraphRun,
    checked: Checked,
    pause: () => Promise<void>,
    report?: (toText: () => string) => void,
  ): Promise<GraphRun> {
    const { output, start, end } = this.#setup.layout
    const rules = this.#rulesOf(checked)
    const encoded = run.outputs.get(output)
    if (!encoded) return run
    const lengths = run.facts.texts?.rows.map(({ ids }) => ids.length)
    const texts: string[] = []
    const [rows = 0] = encoded.shape
    for (let row = 0; row < rows; row++) {
      const own = rowOf(encoded, row, lengths?.[row])
      const tokens: number[] = []
      const writing = writeTokens(this.#session, own, { start, end, rules, pause })
      for await (const { token } of writing) {
        tokens.push(token)
        // A character may need further tokens.
        if (rows === 1) report?.(() => this.#decode(tokens).replace(/\uFFFD+$/, ''))
      }
      texts.push(this.#decode(tokens))
    }
    const written: RawTensor = { type: 'string', data: texts, shape: [texts.length] }
    return { ...run, outputs: new Map(run.outputs).set(output, written) }
  }

  /** Frees the decoder. */
  release(): Promise<void> {
    return this.#session.release()
  }

  #decode(tokens: readonly number[]): string {
    const { tokenizer, layout } = this.#setup
    return tokenizer.decode(tokens, { isPlain: true, tidies: layout.tidy ?? false })
  }

  /** Returns the rules of the model, with those of the task and of the language. */
  #rulesOf(checked: Checked): TokenRules {
    const { layout } = this.#setup
    const { maxTokensInput, languages } = layout
    const target = languages && this.#languageOf(languages.target, checked)
    const maxTokens = maxTokensInput === undefined ? undefined : readValue(checked, maxTokensInput)
    return {
      ...layout,
      ...this.#taskOf(checked),
      ...(target !== undefined && { firstToken: target }),
      ...(maxTokens !== undefined && { maxTokens: Number(maxTokens) }),
    }
  }

  #taskOf(checked: Checked) {
    const { tasks } = this.#setup.layout
    const name = tasks && readValue(checked, tasks.input)
    return typeof name === 'string' ? tasks?.named[name] : undefined
  }

  #tokenize(spec: TextTensorSpec, value: ParsedInput, path: string, checked: Checked) {
    const { prefix = '' } = this.#taskOf(checked) ?? {}
    const { languages } = this.#setup.layout
    const texts = readTexts(value, path).map((text) => prefix + text)
    const source = languages && this.#languageOf(languages.source, checked)
    const rows = tokenizeAll(texts, spec, path)
    if (source === undefined || !languages) return rows
    const known = new Set(languages.names.map((name) => this.#tokenOf(name)))
    // The tokenizer puts the language of its own settings around a text: first, or last.
    return rows.map(({ ids, ...row }) => ({
      ...row,
      ids: ids.map((id, at) =>
        (at === 0 || at === ids.length - 1) && known.has(id) ? source : id,
      ),
    }))
  }

  /** Returns the token of a language that is given. Throws `invalid_request` for another one. */
  #languageOf(input: string, checked: Checked): number | undefined {
    const { names = [] } = this.#setup.layout.languages ?? {}
    const name = readValue(checked, input)
    if (name === undefined) return undefined
    const token = names.includes(String(name)) ? this.#tokenOf(String(name)) : undefined
    if (token !== undefined) return token
    const examples = names.slice(0, SHOWN_LANGUAGES).join(', ')
    const which = `one of the ${names.length} languages of the model, such as ${examples}`
    return throwInvalidInput(`inputs.${input}`, `must be ${which}, not ${JSON.stringify(name)}.`)
  }

  #tokenOf(language: string): number | undefined {
    const { token = '{}' } = this.#setup.layout.languages ?? {}
    return this.#setup.tokenizer.idOf(token.replace('{}', () => language))
  }
}

/** Number of languages that an error names. */
const SHOWN_LANGUAGES = 5

/** Returns a row of a batch, without its padding. */
function rowOf({ type, data, shape }: RawTensor, row: number, length?: number): RawTensor {
  const [, tokens = 0, size = 0] = shape
  const from = row * tokens * size
  const kept = length ?? tokens
  const own = (data as Float32Array).slice(from, from + kept * size)
  return { type, data: own, shape: [1, kept, size] }
}
