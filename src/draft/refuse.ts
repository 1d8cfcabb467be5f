/** Errors that say why a file cannot be added as a model, and what to do about it. */
import { InoriginError } from '../error.ts'

/** Returns an `invalid_request` error for a problem that the user can correct, with the remedy. */
export const refuse = (what: string, todo: string, cause?: unknown): InoriginError =>
  new InoriginError('invalid_request', `${what} ${todo}`, { cause })

/** Returns the error for a file that is not ONNX. `start` holds the first bytes of the file. */
export function notOnnx(path: string, start: Uint8Array, isCut: boolean): InoriginError {
  if (start.length === 0) return refuse(`${path} is empty.`, 'Export or download it again.')
  const format = findFormat(path, start)
  if (format) return refuse(`${path} ${format.what}`, format.todo(path))
  if (isCut) return refuse(`${path} ends in the middle of a model.`, 'Export or download it again.')
  return refuse(`${path} is not an ONNX model.`, 'Choose the .onnx file, or the folder it is in.')
}

/** A format other than ONNX: how it is recognized, and how it is converted. */
interface ModelFormat {
  /** Matches the path of a file that only this format has. Absent if names tell nothing. */
  path?: RegExp
  /** Text at an offset of the file. Absent if the content tells nothing. */
  magic?: { at: number; text: string }
  what: string
  /** Returns what to do, such as a command for the file or for its folder. */
  todo(path: string): string
}

const quote = (path: string): string => (/[^\w./@-]/.test(path) ? JSON.stringify(path) : path)

const toFolder = (path: string): string => quote(path.replace(/[^/\\]*$/, '') || '.')

const convertTensorFlow = (option: string, path: string): string =>
  `Convert it with \`python -m tf2onnx.convert --${option} ${quote(path)} --output model.onnx\`.`

const exportFolder = (path: string): string =>
  `Export its folder with \`optimum-cli export onnx --model ${toFolder(path)} onnx-model\`.`

const exportPyTorch = (path: string): string =>
  `${exportFolder(path)} If the folder has no config.json, call ` +
  "`torch.onnx.export(model, inputs, 'model.onnx')` where the code of the model is."

const exportKeras = (path: string): string =>
  'Convert it in Python with ' +
  `\`keras.models.load_model(${JSON.stringify(path)}).export('model.onnx', format='onnx')\`.`

const exportOriginal = (): string =>
  'It cannot be converted back. Export the model that it was made from.'

/** The first format that matches a file counts. */
const FORMATS: readonly ModelFormat[] = [
  {
    magic: { at: 0, text: 'version https://git-lfs' },
    what: 'is a Git LFS pointer, not the file itself.',
    todo: () => 'Run `git lfs pull` in its repository, or download the file.',
  },
  { magic: { at: 0, text: '<' }, what: 'is a web page.', todo: () => 'Download the file again.' },
  {
    path: /\.gguf$/i,
    magic: { at: 0, text: 'GGUF' },
    what: 'is a GGUF file, which holds weights and no graph.',
    todo: (path) =>
      /\.gguf$/i.test(path)
        ? `Add that file: \`inorigin add ${quote(path)} --tag @me/name\`.`
        : 'Rename it so that its name ends in .gguf.',
  },
  {
    path: /\.safetensors$/i,
    magic: { at: 8, text: '{"' },
    what: 'is a safetensors file, which holds weights and no graph.',
    todo: exportFolder,
  },
  {
    path: /\.tflite$/i,
    magic: { at: 4, text: 'TFL3' },
    what: 'is a TensorFlow Lite file.',
    todo: (path) => convertTensorFlow('tflite', path),
  },
  {
    path: /(^|\/)saved_model\.pb$/,
    what: 'belongs to a TensorFlow SavedModel.',
    todo: (path) => convertTensorFlow('saved-model', toFolder(path)),
  },
  {
    path: /(^|\/)(group\d+-shard\d+of\d+(\.bin)?|tensorflowjs_model\.pb)$/,
    what: 'belongs to a model of TensorFlow.js.',
    todo: (path) => convertTensorFlow('tfjs', path.replace(/[^/\\]*$/, 'model.json')),
  },
  { path: /\.keras$/i, what: 'is a Keras file.', todo: exportKeras },
  {
    path: /\.(h5|hdf5)$/i,
    magic: { at: 0, text: '\x89HDF' },
    what: 'is an HDF5 file, as Keras writes them.',
    todo: exportKeras,
  },
  {
    path: /\.pdmodel$/i,
    what: 'is a PaddlePaddle model.',
    todo: (path) => {
      const name = path.replace(/^.*[/\\]/, '')
      const weights = name.replace(/\.pdmodel$/i, '.pdiparams')
      return (
        `Convert it with \`paddle2onnx --model_dir ${toFolder(path)} --model_filename ${quote(name)} ` +
        `--params_filename ${quote(weights)} --save_file model.onnx\`.`
      )
    },
  },
  {
    path: /\.ort$/i,
    magic: { at: 4, text: 'ORTM' },
    what: 'is in the .ort format.',
    todo: () => 'Choose the .onnx file it was made from.',
  },
  {
    path: /\.(mlmodel|mlmodelc|mlpackage)(\/|$)/i,
    what: 'belongs to a Core ML model.',
    todo: exportOriginal,
  },
  {
    path: /\.(pt|pth|ckpt|safetensors\.index\.json)$|(^|\/)pytorch_model.*\.bin$/i,
    what: 'is a PyTorch file.',
    todo: exportPyTorch,
  },
  {
    magic: { at: 0, text: 'PK\x03\x04' },
    what: 'is a zip archive, as PyTorch and Keras write them.',
    todo: exportPyTorch,
  },
  { magic: { at: 0, text: '\x80' }, what: 'is a pickled Python object.', todo: exportPyTorch },
]

/** Returns the format of a file by its first bytes and its path; `undefined` for an unknown one. */
function findFormat(path: string, start: Uint8Array): ModelFormat | undefined {
  const text = new TextDecoder('latin1').decode(start)
  return (
    FORMATS.find(({ magic }) => magic && text.startsWith(magic.text, magic.at)) ??
    findFormatByPath(path)
  )
}

/** Returns the format that the path of a file tells; `undefined` if it tells none. */
export const findFormatByPath = (path: string): ModelFormat | undefined =>
  FORMATS.find((format) => format.path?.test(path))
