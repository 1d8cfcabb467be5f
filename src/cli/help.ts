const TEXT = `Usage: inorigin init [folder] [options]
       inorigin add <model.onnx|folder> --tag @me/name [options]
       inorigin types [catalog] [-o file.d.ts]
       inorigin catalog refresh <file> [--host <url>]

init

Puts the service worker script, the runtime and the embedded models into your app's
public folder, where serve() finds them. The folder is remembered in package.json:
without one, \`inorigin init\` refreshes it, as after an update of the package.

  folder         What your web server serves at the root of your app, such as public
  --no-guide     Leave the embedded language model out (--guide puts it back)
  --mlc          Add WebLLM, 6 MB, which runs models compiled by MLC, and the catalog of
                 those it knows, inorigin/catalogs/mlc.json (--no-mlc takes them away)
  --sw <name>    Name of the service worker script (default: sw.js)
  --own-sw       Write no such script: your own calls attach() of 'inorigin/sw'

add

Makes an ONNX model a predictor of your app: drafts its signature from the inputs and
outputs of the graph, tries it in the runtime, copies its files to
<public>/inorigin/@me/name and lists it in <public>/inorigin/catalog.json. A folder with
config.json, tokenizer.json and onnx/ becomes a chat model, or an encoder of texts; one
that MLC compiled a model to, with its library beside, becomes a chat model by WebLLM.

  --tag <tag>    What it is asked for by, such as @me/name
  --name <name>  Its name for people (default: the file's)
  --public <folder>        Your app's public folder (default: the one init was given)
  --max-file-bytes <n>     Cut larger files, for hosts that cap them (default: 25000000)
  --device <device>        Only webgpu, or only wasm (default: both)
  --dtypes <list>          Of a folder, only these precisions, such as q4,q4f16
  --tensor <input>         Keep an input a tensor that looks like an image; may be repeated
  --force        Replace an entry of that tag, and its files

types

Writes TypeScript types for the predictors of a catalog, which make
server.predict('@me/name', { ... }) typed in its inputs and outputs.

  catalog        A catalog's path (default: those in the public folder)
  -o, --out <file>         Where to write (default: to the terminal)
  --public <folder>        Your app's public folder (default: the one init was given)

catalog refresh

Looks up every model that a catalog lists by its repository on a hub, or by what WebLLM
calls it ("mlc"), and writes its commit, files, lengths and hashes into the catalog, so
that browsers need not ask.

  file           The catalog, a JSON document
  --host <url>   A mirror to ask in place of the hub that entries name
  HF_TOKEN       In the environment: a token for repositories that are not public

  --help         Show this
  --version      Show the version

Exits with 0 when done, 1 when that failed, 2 when the command was not understood,
130 when it was interrupted.`

/** Lines that `inorigin --help` shows. */
export const HELP: readonly string[] = TEXT.split('\n')
