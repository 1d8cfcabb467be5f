/**
 * Rules by which BPE tokenizers split a text into words, by the values of `tokenizer.ggml.pre`. They
 * split as llama.cpp does, which differs in places from the tokenizer that a model was trained with.
 */
import { shorten } from '../../values/text.ts'
import { modelUnusable } from '../failure.ts'

/** Way in which a tokenizer splits texts, with two of its defaults. */
export interface PreTokenizer {
  /**
   * Regular expressions. Each splits the parts that the one before it has left, into its matches and
   * the texts between them.
   */
  rules: readonly string[]
  /** `true` if a word that is a token is not merged from its characters. */
  ignoresMerges?: true
  /** `true` if prompts begin with the BOS token, unless the metadata says no. */
  addsBos?: true
}

const CONTRACTION = `'(?:[sSdDmMtT]|[rRvV][eE]|[lL][lL])`

const SIGNS = String.raw` ?[^\s\p{L}\p{N}]+`

/** White space up to the last line break, or all of it but a space before a word. */
const SPACES = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`

/** Words, numbers and signs, each with the space before it. */
const GPT_2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|${SIGNS}|\s+(?!\S)|\s+`

/** Words with any sign before them, and parts of numbers. */
const cl100k = (digits: string, letters = String.raw`\p{L}`): string =>
  String.raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?[${letters}]+|\p{N}${digits}|` +
  String.raw` ?[^\s\p{N}${letters}]+[\r\n]*|${SPACES}`

/** Words that end before a capital letter inside them. Letters beyond ASCII have either case. */
function camelCase(digits: string, contraction = ''): string {
  const before = String.raw`[^\r\n\p{L}\p{N}]?`
  const [upper, lower] = [String.raw`[^\P{L}a-z]`, String.raw`[^\P{L}A-Z]`]
  return (
    `${before}${upper}*${lower}+${contraction}|${before}${upper}+${lower}*${contraction}|` +
    String.raw`\p{N}${digits}|${SIGNS}[\r\n/]*|${SPACES}`
  )
}

/** Letters that have a case, except in scripts that the first DeepSeek tokenizer did not know. */
const DEEPSEEK_LETTER =
  String.raw`(?![\u0560-\u0588\u10C7-\u10FF\u1C80-\u1C8A\u2D00-\u2D2D\uA790-\uA7FA\uAB30-\uAB68` +
  String.raw`\u{10570}-\u{105BF}\u{10D50}-\u{10D8F}\u{16E40}-\u{16EDF}\u{1D400}-\u{1D7CF}` +
  String.raw`\u{1DF00}-\u{1DF2F}])[\p{Lu}\p{Ll}\p{Lt}]`

/** Letters of East Asia and many other scripts. */
const DEEPSEEK_IDEOGRAPHS = String.raw`(?:(?!\s)[\u0800-\u9FA5\uAC00-\uD7FF])+`

const DEEPSEEK_3 = [
  String.raw`\p{N}{1,3}`,
  String.raw`[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+`,
  String.raw`[!-/:-@\[-${'`'}{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|` +
    String.raw` ?[\p{P}\p{S}]+[\r\n]*|${SPACES}`,
]

const LLAMA_3: PreTokenizer = { rules: [cl100k('{1,3}')], ignoresMerges: true, addsBos: true }
const THREE_DIGITS = '[0-9][0-9][0-9]'

/** Ways to split by the names that llama.cpp gives to them, which are separated by spaces. */
const FAMILIES: readonly (readonly [names: string, PreTokenizer])[] = [
  ['llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2', LLAMA_3],
  ['dbrx smaug-bpe glm4 chatglm-bpe', { rules: [cl100k('{1,3}')] }],
  [
    'qwen2 deepseek-r1-qwen kormo megrez stablelm2 hunyuan solar-open grok-2 seed-coder',
    { rules: [cl100k('')] },
  ],
  ['qwen35', { rules: [cl100k('', String.raw`\p{L}\p{M}`)] }],
  ['minicpm5', { rules: [String.raw`\p{N}{1,3}`, cl100k('+')], ignoresMerges: true }],
  [
    'gpt-2 phi-2 gigachat a.x-4.0 mellum exaone4 mpt olmo jais trillion granite-docling',
    { rules: [GPT_2] },
  ],
  [
    'smollm starcoder refact command-r codeshell exaone minerva-7b mellum2',
    { rules: [String.raw`\p{N}`, GPT_2] },
  ],
  ['tekken', { rules: [camelCase('')], ignoresMerges: true, addsBos: true }],
  [
    'gpt-4o llama4 kanana2 talkie minimax-m2',
    { rules: [camelCase('{1,3}', `(?:${CONTRACTION})?`)] },
  ],
  ['deepseek-v3 hunyuan-dense joyai-llm', { rules: DEEPSEEK_3 }],
  [
    'deepseek-llm',
    {
      rules: [
        String.raw`[\r\n]`,
        String.raw`\s?(?:${DEEPSEEK_LETTER})+`,
        String.raw`\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3001\u3002]+`,
        String.raw`\s+$`,
        DEEPSEEK_IDEOGRAPHS,
        String.raw`\p{N}+`,
      ],
    },
  ],
  [
    'deepseek-coder',
    {
      rules: [
        String.raw`[\r\n]`,
        String.raw`\s?\p{L}+`,
        String.raw`\s?\p{P}+`,
        DEEPSEEK_IDEOGRAPHS,
        String.raw`\p{N}`,
      ],
    },
  ],
  ['falcon', { rules: [String.raw`[\p{P}\$\+<=>\^~\|${'`'}]+`, GPT_2, THREE_DIGITS] }],
  [
    'default',
    { rules: [String.raw`[\p{P}\$\+<=>\^~\|]+`, GPT_2, String.raw`\p{N}+`, THREE_DIGITS] },
  ],
  ['viking', { rules: [String.raw` ?[^(\s|.,!?…。，、।۔،)]+`, String.raw`\p{N}`] }],
  ['superbpe', { rules: [String.raw`\p{N}+`, '(?=(?:[0-9]{3})+(?![0-9]))'] }],
]

const BY_NAME: ReadonlyMap<string, PreTokenizer> = new Map(
  FAMILIES.flatMap(([names, one]) => names.split(' ').map((name) => [name, one] as const)),
)

/** Returns the way of a name. Throws `model_unusable`, with all names, if it is not known. */
export function findPreTokenizer(name: string): PreTokenizer {
  const found = BY_NAME.get(name)
  if (found) return found
  throw modelUnusable(
    `its tokenizer splits texts in the way "${shorten(name)}" (\`tokenizer.ggml.pre\`), which is ` +
      `not known. Known are ${[...BY_NAME.keys()].join(', ')}.`,
  )
}
