/** Reads the files beside a graph that say what its task is, and how inputs are prepared for it. */
import { isObject } from '../../values/objects.ts'
import { type Folder, readJson, readText } from '../folder.ts'
import { refuse } from '../refuse.ts'

/** Content of a JSON file. */
export type Config = Readonly<Record<string, unknown>>

/** Part of an encoder of sentence-transformers. */
export interface SentenceModule {
  /** Name of its class, such as `Pooling`. */
  kind: string
  /** Content of its `config.json`; empty without one. */
  config: Config
}

/** Token of its own in a tokenizer. */
interface AddedToken {
  content: string
  /** `undefined` if the file does not have it. */
  id?: number | undefined
}

/** Files of a model folder. Those that it lacks are empty objects. */
export interface TaskFiles {
  /** `config.json`. */
  config: Config
  /** `generation_config.json`. */
  generation: Config
  /** `tokenizer_config.json`. */
  tokenizer: Config
  /** `true` if there is a `tokenizer.json`. */
  hasTokenizer: boolean
  /** Tokens that `tokenizer_config.json` adds to those of the model. */
  addedTokens: readonly AddedToken[]
  /** `vocab.json` of a recognizer of speech or of a voice; empty for other models. */
  vocabulary: Config
  /** `preprocessor_config.json`. */
  preprocessor: Config
  /** `sentence_bert_config.json`. */
  sentence: Config
  /** `config_sentence_transformers.json`. */
  prompts: Config
  /** Parts that `modules.json` lists, in order; `null` without that file. */
  modules: readonly SentenceModule[] | null
  /** `1_Pooling/config.json`, which may be there without `modules.json`. */
  pooling: Config
}

/** Architectures that score or read the letters of a small vocabulary. */
const READS_LETTERS = /(ForCTC|^VitsModel)$/

/** Resolves with the files. Rejects with `invalid_request` that names a file which is no JSON. */
export async function readTaskFiles(folder: Folder, config: Config): Promise<TaskFiles> {
  const has = (path: string): boolean => folder.sizeOf(path) !== undefined
  const read = async (path: string): Promise<Config> => (has(path) ? readJson(folder, path) : {})
  const [generation, tokenizer, preprocessor, sentence, prompts, pooling] = await Promise.all(
    [
      'generation_config.json',
      'tokenizer_config.json',
      'preprocessor_config.json',
      'sentence_bert_config.json',
      'config_sentence_transformers.json',
      '1_Pooling/config.json',
    ].map(read),
  )
  return {
    config,
    generation: generation ?? {},
    tokenizer: tokenizer ?? {},
    hasTokenizer: has('tokenizer.json'),
    addedTokens: readAddedTokens(tokenizer ?? {}),
    // Other models have tens of thousands of tokens there, and in tokenizer.json, too.
    vocabulary: READS_LETTERS.test(architectureOf(config)) ? await read('vocab.json') : {},
    preprocessor: preprocessor ?? {},
    sentence: sentence ?? {},
    prompts: prompts ?? {},
    pooling: pooling ?? {},
    modules: has('modules.json') ? await readModules(folder, read) : null,
  }
}

function readAddedTokens(config: Config): AddedToken[] {
  const { added_tokens_decoder: added, additional_special_tokens: special } = config
  const listed = isObject(added)
    ? Object.entries(added).map(([id, token]) => ({ token, id: Number(id) }))
    : [special].flat().map((token) => ({ token, id: undefined }))
  return listed.flatMap(({ token, id }) => {
    const content = isObject(token) ? token['content'] : token
    return typeof content === 'string' ? [{ content, id }] : []
  })
}

async function readModules(folder: Folder, read: (path: string) => Promise<Config>) {
  let list: unknown
  try {
    list = JSON.parse(await readText(folder, 'modules.json'))
  } catch (cause) {
    throw refuse(`${folder.nameOf('modules.json')} is not JSON.`, 'Download it again.', cause)
  }
  if (!Array.isArray(list))
    throw refuse(`${folder.nameOf('modules.json')} is not a list.`, 'Download it again.')
  return Promise.all(
    list.filter(isObject).map(async ({ type, path }): Promise<SentenceModule> => {
      const kind = String(type).replace(/^.*\./, '')
      const place = typeof path === 'string' && path !== '' ? `${path}/config.json` : ''
      return { kind, config: place ? await read(place) : {} }
    }),
  )
}

/** Returns the architecture that `config.json` names, such as `BertModel`; empty without one. */
export const architectureOf = ({ architectures }: Config): string =>
  String([architectures].flat()[0] ?? '')

/** Returns a number greater than 0 of a file; `undefined` for anything else. */
export const positive = (value: unknown): number | undefined =>
  typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : undefined
