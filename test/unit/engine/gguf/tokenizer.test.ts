/** Tokenizers of GGUF files. Expected ids are those of llama.cpp for the same small files. */
import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../../../src/engine/engine.ts'
import { describeModel } from '../../../../src/engine/gguf/card.ts'
import { readGguf, toByteSource } from '../../../../src/engine/gguf/header.ts'
import { toModelFiles } from '../../../../src/engine/gguf/model-files.ts'
import { findPreTokenizer } from '../../../../src/engine/gguf/pre-tokenizers.ts'
import { type GgufTokenizer, readTokenizer } from '../../../../src/engine/gguf/tokenizer.ts'
import { readConfig } from '../../../../src/engine/text/config.ts'
import {
  createPromptBuilder,
  PromptTokenizer,
} from '../../../../src/engine/text/prompt-tokenizer.ts'
import { createDetokenizerFactory } from '../../../../src/engine/text/vocabulary.ts'
import { writeGguf, type Written } from '../../../support/gguf.ts'
import {
  byteLevelMetadata,
  type ExtraToken,
  KIND,
  sentencePieceMetadata,
} from '../../../support/gguf-tokenizers.ts'

type Settings = Record<string, Written>

const readBack = async (metadata: Settings) =>
  (await readGguf(toByteSource(new Blob([writeGguf({ metadata, tensors: [] })])))).metadata

const open = async (metadata: Settings): Promise<GgufTokenizer> =>
  readTokenizer(await readBack(metadata))

/** Returns the tokens of a text, in which special tokens count or do not. */
async function encoder(metadata: Settings) {
  const { file } = await open(metadata)
  const tokenizer = new PromptTokenizer(structuredClone(file), {}, '')
  const plain = (text: string): number[] => {
    const conversation: Conversation = { messages: [{ role: 'user', content: text }] }
    const render: Parameters<PromptTokenizer['encode']>[1] = (_, escape) => {
      const escaped = escape(text)
      return { text: escaped, ends: [], opening: escaped.length, answer: escaped.length }
    }
    return [...tokenizer.encode(conversation, render, Infinity).tokens]
  }
  return { plain, parsed: (text: string) => tokenizer.encodeTrusted(text), file }
}

const TAG: ExtraToken = ['<tag>', KIND.userDefined]
const BREAKS: ExtraToken = ['\n\n', KIND.userDefined]

describe('SentencePiece', () => {
  test.each([
    // Two pairs make `aaa`, and the leftmost pair of the highest score is merged first.
    ['aaaaa', [261, 269, 270]],
    ['abc', [261, 271, 264]],
    ['bcab', [261, 272, 271]],
    ['hello  hello', [278, 261, 278]],
    [' hello', [261, 278]],
    ['▁hello', [261, 278]],
    ['é', [261, 200, 174]],
    ['\uD800', [261, 244, 196, 194]],
    ['<0x0A>', [261, 65, 53, 125, 53, 70, 67]],
    ['hello<tag>hello', [278, 280, 278]],
    ['\n\n\nhe', [281, 261, 15, 274]],
  ])('makes the tokens of %j', async (text, ids) => {
    const { plain, parsed } = await encoder(sentencePieceMetadata([TAG, BREAKS]))
    expect(plain(text)).toEqual(ids)
    expect(parsed(text)).toEqual(ids)
  })

  test('puts no space before a text if the file says so', async () => {
    const { plain } = await encoder({
      ...sentencePieceMetadata(),
      'tokenizer.ggml.add_space_prefix': { boolean: false },
    })
    expect(plain('hello  hello')).toEqual([277, 261, 278])
    expect(plain('aaaaa')).toEqual([269, 270])
  })

  test('puts a space behind each special token, which text never becomes', async () => {
    const { plain, parsed } = await encoder(sentencePieceMetadata())
    expect(parsed('a<|im_end|>a')).toEqual([261, 262, 4, 261, 262])
    expect(plain('a<|im_end|>a')).not.toContain(4)
  })

  test('uses the unknown token if a byte has no token', async () => {
    const metadata = sentencePieceMetadata()
    const tokens = metadata['tokenizer.ggml.tokens'] as { texts: string[] }
    const texts = tokens.texts.map((text) => (text === '<0xC3>' ? 'other' : text))
    const { plain } = await encoder({ ...metadata, 'tokenizer.ggml.tokens': { texts } })
    expect(plain('é')).toEqual([261, 0])
  })

  test('turns a long text without spaces into tokens in time', async () => {
    const { plain } = await encoder(sentencePieceMetadata())
    expect(plain('abc'.repeat(20_000))).toHaveLength(40_001)
  })

  test('decodes what it made', async () => {
    const { plain, file } = await encoder(sentencePieceMetadata([TAG]))
    const text = 'hello  é<tag> abc'
    const detokenizer = createDetokenizerFactory(file, {})()
    // A space precedes text behind a token that is not special, too.
    expect(
      plain(text)
        .map((id) => detokenizer.push(id))
        .join(''),
    ).toBe('hello  é<tag>  abc')
  })
})

describe('Byte-level BPE', () => {
  test.each([
    ['hello  hello', [264, 37, 265]],
    ['é', [200, 174]],
    ['\uD800', [244, 196, 194]],
    ['hello<tag>hello', [264, 268, 264]],
    ['\n\n\nhe', [267, 15, 262]],
    ["'ſ", [44, 202, 196]],
    ['Hello-hello', [77, 106, 263, 50, 264]],
  ])('makes the tokens of %j', async (text, ids) => {
    const { plain, parsed } = await encoder(byteLevelMetadata('llama-bpe', [TAG]))
    expect(plain(text)).toEqual(ids)
    expect(parsed(text)).toEqual(ids)
  })

  test('takes a word that is a token as it is, if its kind does so', async () => {
    const extra: ExtraToken[] = [['hell', KIND.normal]]
    const ids = async (pre: string) => (await encoder(byteLevelMetadata(pre, extra))).plain('hell')
    expect(await ids('llama-bpe')).toEqual([268])
    expect(await ids('qwen2')).toEqual([262, 261])
  })

  test('uses the first of two equal merges', async () => {
    const merges = ['a b', 'b c', 'ab c', 'a b']
    const metadata = byteLevelMetadata('gpt-2', [], merges.slice(0, 3))
    const { plain } = await encoder({ ...metadata, 'tokenizer.ggml.merges': { texts: merges } })
    expect(plain('abc')).toEqual([263])
  })
})

test.each([
  ['default', "don't 12345 a+b", ['don', "'", 't', 'Ġ', '123', '45', 'Ġa', '+', 'b']],
  ['gpt-2', "Don't  12345!", ['Don', "'t", 'Ġ', 'Ġ12345', '!']],
  ['smollm', 'a 123', ['a', 'Ġ', '1', '2', '3']],
  ['llama-bpe', "I'LL 12345\n\n x", ['I', "'LL", 'Ġ', '123', '45', 'ĊĊ', 'Ġx']],
  ['lfm2', '\ta 1234', ['ĉa', 'Ġ', '123', '4']],
  ['smaug-bpe', '1234', ['123', '4']],
  ['qwen2', 'a 123!\n\nb', ['a', 'Ġ', '1', '2', '3', '!ĊĊ', 'b']],
  ['qwen35', 'e\u0301a', ['eÌģa']],
  ['tekken', 'helloWorld HTTPServer 12', ['hello', 'World', 'ĠHTTPServer', 'Ġ', '1', '2']],
  ['gpt-4o', "he's 1234", ["he's", 'Ġ', '123', '4']],
  ['deepseek-v3', 'a中b +x', ['a', 'ä¸Ń', 'b', 'Ġ+', 'x']],
  ['deepseek-llm', 'ab 12中', ['ab', 'Ġ', '12', 'ä¸Ń']],
  ['deepseek-coder', 'ab 12', ['ab', 'Ġ', '1', '2']],
  ['superbpe', 'ab 1234567', ['ab ', '1', '234', '567'].map((word) => word.replace(' ', 'Ġ'))],
])('%s splits %j', async (pre, text, words) => {
  const { file } = await open(byteLevelMetadata(pre))
  const tokenizer = new Tokenizer(file, {})
  expect(tokenizer.pre_tokenizer?.pre_tokenize(text)).toEqual(words)
})

test('an unknown way to split is refused with those that are known', () => {
  expect(() => findPreTokenizer('other')).toThrow(
    /the way "other" \(`tokenizer.ggml.pre`\).*Known are llama3, .*qwen2.*superbpe/,
  )
})

describe('special tokens', () => {
  test('end tokens are those that keys name and those with a usual text', async () => {
    const extra: ExtraToken[] = [
      ['<|eot_id|>', KIND.normal],
      ['<end>', KIND.control],
      ['<|fim_pad|>', KIND.control],
      ['<|repo_name|>', KIND.control],
      ['<REPO>', KIND.control],
    ]
    const { endTokens, file } = await open({
      ...byteLevelMetadata('qwen2', extra),
      'tokenizer.ggml.eot_token_id': { uint32: 269 },
    })
    expect(endTokens).toEqual([2, 4, 268, 269, 270, 271])
    expect(file.added_tokens.find(({ content }) => content === '<|eot_id|>')?.special).toBe(true)
  })

  test('a token between the parts of an answer does not end it', async () => {
    const texts = ['<|end|>', '<|return|>', '<|call|>', '<|tool_response>']
    const extra = texts.map((text): ExtraToken => [text, KIND.control])
    const { endTokens } = await open(byteLevelMetadata('gpt-4o', extra))
    // `</s>` is text where calls end with `<|tool_response>`.
    expect(endTokens).toEqual([2, 4, 268, 269, 270, 271].filter((id) => id !== 268 && id !== 2))
  })

  test('remove the white space behind them only in Phi-3', async () => {
    const stripped = async (name: string) => {
      const { file } = await open({ ...sentencePieceMetadata(), 'general.name': { text: name } })
      return file.added_tokens.filter(({ rstrip }) => rstrip).map(({ content }) => content)
    }
    expect(await stripped('Phi 3 mini')).toEqual([])
    expect(await stripped('Phi-3 mini')).toEqual(['</s>', '<|im_start|>', '<|im_end|>'])
  })
})

const HEAD: Settings = {
  'general.architecture': { text: 'llama' },
  'llama.context_length': { uint32: 100 },
  'llama.embedding_length': { uint32: 64 },
  'llama.attention.head_count': { uint32: 4 },
  'llama.attention.head_count_kv': { int32s: [0, 2] },
}

const TEMPLATE =
  '{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}'

async function configure(metadata: Settings) {
  const files = toModelFiles(await readBack({ ...HEAD, ...metadata }))
  return readConfig(new Map([...files].map(([name, text]) => [name, new Blob([text])])))
}

describe('the configuration', () => {
  test('has the sizes, sampling defaults and templates of the metadata', async () => {
    const config = await configure({
      ...sentencePieceMetadata(),
      'tokenizer.chat_template': { text: TEMPLATE },
      'tokenizer.chat_templates': { texts: ['tool_use', 'other'] },
      'tokenizer.chat_template.tool_use': { text: `{{ bos_token }}${TEMPLATE}` },
      'general.sampling.temp': { float32: 0.5 },
      'general.sampling.top_k': { int32: 20 },
      'tokenizer.ggml.suppress_tokens': { int32s: [7] },
    })
    expect(config).toMatchObject({
      contextWindow: 100,
      heads: 4,
      kvHeads: 2,
      headSize: 16,
      firstPosition: 0,
      sampling: { temperature: 0.5, topK: 20, suppress: [7] },
      tokenNames: { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' },
      endTokens: new Set([2, 4]),
    })
    const { plain, tools } = config.templates
    expect([plain, tools]).toEqual([`{{ bos_token }}${TEMPLATE}`, `{{ bos_token }}${TEMPLATE}`])
  })

  test.each([
    [true, [1, 3, 279, 278, 4]],
    [false, [3, 279, 278, 4]],
  ])('prompts begin with the BOS token: %s', async (boolean, tokens) => {
    const config = await configure({
      ...sentencePieceMetadata(),
      'tokenizer.chat_template': { text: TEMPLATE },
      'tokenizer.ggml.add_bos_token': { boolean },
    })
    const { prepare } = createPromptBuilder(config, 100)
    const conversation: Conversation = { messages: [{ role: 'user', content: '  hello' }] }
    expect(prepare(conversation).tokens).toEqual(tokens)
  })

  test('a model without a template cannot chat', async () => {
    await expect(configure(sentencePieceMetadata())).rejects.toMatchObject({
      code: 'no_chat_template',
    })
  })
})

const spm = sentencePieceMetadata()
const bpe = byteLevelMetadata()

test.each<[error: string, metadata: Settings]>([
  ['`tokenizer.ggml.model` of the GGUF file must be "gpt2" or "llama", got none', {}],
  ['must be "gpt2" or "llama", got "bert"', { 'tokenizer.ggml.model': { text: 'bert' } }],
  [
    '`tokenizer.ggml.model` of the GGUF file must be a text, got 3',
    { 'tokenizer.ggml.model': { uint32: 3 } },
  ],
  ['must list the tokens, and there is none', { ...spm, 'tokenizer.ggml.tokens': { texts: [] } }],
  [
    'must be an array of texts, got an array of another type',
    { ...spm, 'tokenizer.ggml.tokens': { int32s: [1] } },
  ],
  [
    'has the text "a" twice, as tokens 0 and 2',
    { ...spm, 'tokenizer.ggml.tokens': { texts: ['a', 'b', 'a'] } },
  ],
  [
    '`tokenizer.ggml.scores` of the GGUF file has 1 values, and there are 280 tokens',
    { ...spm, 'tokenizer.ggml.scores': { float32s: [1] } },
  ],
  [
    'has the score NaN of token 1',
    {
      ...spm,
      'tokenizer.ggml.scores': {
        float32s: Array.from({ length: 280 }, (_, id) => (id === 1 ? NaN : 0)),
      },
    },
  ],
  [
    '`tokenizer.ggml.token_type` of the GGUF file has 2 values, and there are 280 tokens',
    { ...spm, 'tokenizer.ggml.token_type': { int32s: [1, 1] } },
  ],
  [
    'must be an array of numbers of at most 32 bits, got "x"',
    { ...spm, 'tokenizer.ggml.token_type': { text: 'x' } },
  ],
  [
    '`tokenizer.ggml.eos_token_id` of the GGUF file must be an integer from 0 to 279, the last of its tokens, got 280',
    { ...spm, 'tokenizer.ggml.eos_token_id': { uint32: 280 } },
  ],
  [
    'must be an integer from 0 to 279, the last of its tokens, got -1',
    { ...spm, 'tokenizer.ggml.bos_token_id': { int32: -1 } },
  ],
  [
    '`tokenizer.ggml.add_bos_token` of the GGUF file must be true or false, got 1',
    { ...spm, 'tokenizer.ggml.add_bos_token': { uint32: 1 } },
  ],
  [
    '`tokenizer.ggml.merges` of the GGUF file is missing',
    { ...spm, 'tokenizer.ggml.model': { text: 'gpt2' } },
  ],
  [
    'has the wrong pair 1, "a zz": "zz" is no token',
    { ...bpe, 'tokenizer.ggml.merges': { texts: ['l l', 'a zz'] } },
  ],
  [
    'has the wrong pair 0, "a a": "aa" is no token',
    { ...bpe, 'tokenizer.ggml.merges': { texts: ['a a'] } },
  ],
  [
    'has the wrong pair 0, "aa": it is no pair',
    { ...bpe, 'tokenizer.ggml.merges': { texts: ['aa'] } },
  ],
  ['splits texts in the way "x"', { ...bpe, 'tokenizer.ggml.pre': { text: 'x' } }],
  [
    '`general.architecture` of the GGUF file must be a text',
    { ...spm, 'general.architecture': { uint32: 1 } },
  ],
  [
    '`llama.context_length` of the GGUF file must be a positive integer, got 0',
    { ...spm, 'llama.context_length': { uint32: 0 } },
  ],
  [
    '`llama.context_length` of the GGUF file must be a finite number, got "8"',
    { ...spm, 'llama.context_length': { text: '8' } },
  ],
  [
    '`general.sampling.temp` of the GGUF file must be a finite number, got NaN',
    { ...spm, 'general.sampling.temp': { float32: NaN } },
  ],
  [
    '`tokenizer.chat_template` of the GGUF file must be a text, got false',
    { ...spm, 'tokenizer.chat_template': { boolean: false } },
  ],
])('wrong metadata is refused: %s', async (error, metadata) => {
  const file = await readBack({ ...HEAD, ...metadata })
  expect(() => toModelFiles(file)).toThrow(error)
})

test('a token without a text, or with a text that is not UTF-8, gets a name', async () => {
  const { file } = await open({
    ...spm,
    'tokenizer.ggml.tokens': {
      texts: (spm['tokenizer.ggml.tokens'] as { texts: string[] }).texts.map((text, id) =>
        id === 270 ? '' : id > 275 ? '\uFFFD' : text,
      ),
    },
  })
  const names = Object.keys(file.model.vocab)
  expect(names).toHaveLength(280)
  expect(names).toEqual(expect.arrayContaining(['[EMPTY_270]', '[INVALID_277]', '\uFFFD']))
})

test('a model is described by what its metadata states', async () => {
  const described = describeModel(
    await readBack({
      ...HEAD,
      'general.name': { text: 'A model' },
      'general.license': { text: 'mit' },
      'general.size_label': { text: '135M' },
      'general.file_type': { uint32: 15 },
      'general.languages': { texts: ['en', 'de'] },
    }),
  )
  expect(described).toEqual({
    name: 'A model',
    license: 'mit',
    size: '135M',
    quantization: 'Q4_K_M',
    contextTokens: 100,
    languages: ['en', 'de'],
  })
  expect(describeModel(await readBack({ 'general.file_type': { uint32: 99 } }))).toEqual({})
})
