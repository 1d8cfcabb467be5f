/** Formats of models that browsers do not load, by the names of their files. */
const FORMATS = [
  [/\.safetensors$/i, 'safetensors'],
  [/\.(pt|pth|ckpt|bin)$/i, 'PyTorch'],
  [/\.(h5|keras)$/i, 'Keras'],
  [/\.(tflite|pb)$/i, 'TensorFlow'],
  [/\.(mlmodel|mlpackage)$/i, 'Core ML'],
  [/\.(npz|msgpack)$/i, 'JAX'],
] as const

const ARCHIVE = /\.(zip|tar|tgz|gz|7z|rar)$/i

/** Returns what to do with a file that is a model in a format of others; `undefined` for another file. */
export function describeForeignModel(name: string): string | undefined {
  if (ARCHIVE.test(name))
    return `${name} is an archive. Unpack it, and drop the folder of the model.`
  const format = FORMATS.find(([end]) => end.test(name))
  if (!format) return undefined
  const what = `${name} has the format of ${format[1]}, which browsers cannot load.`
  return `${what} Drop the model as a GGUF file or as a folder with ONNX files.`
}
