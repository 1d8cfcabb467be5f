"""Makes folders as real exporters write them, from tiny models with random weights.

    python make.py --exporter optimum --dir DIR [name ...]
    python make.py --exporter genai --dir DIR [name ...]

Each folder has the layout of the hub, or that of the exporter, and a `reference.json` beside its
files, with which `npm run test:exporters -- --dir DIR` compares the answers of the browser.
The two exporters need two environments, because they need different versions of transformers.
"""

import argparse
import json
import logging
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import onnx
import transformers

from models import ARCHITECTURES, ensure_model
from reference import Chat, OnnxModel, TorchModel, write_reference

TEXTS = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
]


def head_size(source):
    config = transformers.AutoConfig.from_pretrained(source)
    config = config.get_text_config()
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def export_optimum(name, source, root):
    """Writes float32, and from it 8 bits, 4 bits and float16, each as one file of the hub's layout."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from optimum.exporters.onnx import main_export

    folder = fresh(root / f"{name}-optimum")
    graphs = folder / "onnx"
    graphs.mkdir()
    copy_texts(source, folder)
    with tempfile.TemporaryDirectory() as made:
        main_export(str(source), made, task="text-generation-with-past", do_validation=False, no_post_process=True)
        # Larger models on the hub keep their weights in external data. Files of one piece that are made
        # from such a model still name, for each tensor, a location: the default one.
        onnx.save(
            onnx.load(f"{made}/model.onnx"),
            str(graphs / "model.onnx"),
            save_as_external_data=True,
            location="model.onnx_data",
            size_threshold=1024,
        )
    whole = graphs / "model.onnx"

    def quantize():
        quantizer = MatMulNBitsQuantizer(onnx.load(whole), block_size=32, is_symmetric=True)
        quantizer.process()
        return quantizer.model.model

    # This file has no reference: it rounds the activations of a chunk by one scale, so its answers
    # depend on how a prompt is divided into chunks.
    quantize_dynamic(whole, graphs / "model_quantized.onnx", weight_type=QuantType.QInt8)
    onnx.save(quantize(), graphs / "model_q4.onnx")
    onnx.save(convert_float_to_float16(onnx.load(whole), keep_io_types=True), graphs / "model_fp16.onnx")
    onnx.save(convert_float_to_float16(quantize(), keep_io_types=True), graphs / "model_q4f16.onnx")
    files = {
        "fp32": whole,
        "q4": graphs / "model_q4.onnx",
        "fp16": graphs / "model_fp16.onnx",
        "q4f16": graphs / "model_q4f16.onnx",
    }
    describe(folder, source, files, f"optimum-onnx {version('optimum-onnx')}")


# Precision by the suffix of its folder, with the arguments of the builder.
BUILDER = {
    "fp32": ["-p", "fp32", "-e", "cpu"],
    "q4": ["-p", "int4", "-e", "cpu"],
    "q4f16": ["-p", "int4", "-e", "webgpu"],
    "pruned": ["-p", "fp32", "-e", "cpu", "--extra_options", "prune_lm_head=true"],
}


def export_genai(name, source, root):
    """Writes one folder for each precision, as the builder does: genai_config.json and model.onnx."""
    for suffix, arguments in BUILDER.items():
        folder = fresh(root / f"{name}-genai-{suffix}")
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", folder]
        with tempfile.TemporaryDirectory() as cache:
            run = subprocess.run([*command, "-c", cache, *arguments], capture_output=True, text=True)
        if run.returncode != 0:
            shutil.rmtree(folder)
            print(f"{folder.name}: {run.stderr.strip().splitlines()[-1]}", flush=True)
            continue
        precision = "fp32" if suffix == "pruned" else suffix
        files = {precision: folder / "model.onnx"}
        try:
            describe(folder, source, files, f"onnxruntime-genai {version('onnxruntime-genai')}")
        except Exception as error:  # Some files for WebGPU have operators that only a GPU runs.
            print(f"{folder.name}: no reference: {str(error).splitlines()[0]}", flush=True)


def describe(folder, source, files, exporter):
    models = {
        precision: TorchModel(source) if precision == "fp32" else OnnxModel(path, head_size(source))
        for precision, path in files.items()
    }
    architecture = json.loads((source / "config.json").read_text())["architectures"][0]
    about = {"exporter": exporter, "transformers": transformers.__version__, "architecture": architecture}
    write_reference(folder, Chat(source), models, about)
    print(f"{folder.name}: {', '.join(files)}", flush=True)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def copy_texts(source, folder):
    for text in TEXTS:
        if (source / text).exists():
            shutil.copy(source / text, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"default: all of {', '.join(ARCHITECTURES)}")
    parser.add_argument("--exporter", choices=["optimum", "genai"], required=True)
    parser.add_argument("--dir", type=Path, required=True, help="folder to write to")
    given = parser.parse_args()
    export = {"optimum": export_optimum, "genai": export_genai}[given.exporter]
    # The quantizer logs each node.
    logging.disable(logging.INFO)
    failed = 0
    for name in given.names or ARCHITECTURES:
        try:
            source = ensure_model(name, given.dir / ".models")
            export(name, source, given.dir)
        except Exception as error:  # Not every exporter knows every architecture.
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    sys.exit(1 if failed and given.names else 0)


if __name__ == "__main__":
    main()
