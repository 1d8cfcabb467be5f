"""Writes the graphs of the models that are only measured: decoders with a context of 4,096.

    /usr/bin/python3 test/bench/models/graphs.py

Needs numpy and onnx. A graph is a few kilobytes and committed; its weights are random and drawn by
`weights.ts` on the machine that measures, after the list beside the graph.
"""

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

FOLDER = pathlib.Path(__file__).parent
CONTEXT, VOCABULARY, EPSILON = 4096, 2048, 1e-5
MODELS = {
    # Much cache for few weights, as small models on long conversations have.
    "small": {"hidden": 128, "layers": 4, "heads": 4, "kv_heads": 4, "head": 64, "ffn": 256},
    # More than 200 MB, to be loaded.
    "large": {"hidden": 768, "layers": 8, "heads": 12, "kv_heads": 4, "head": 64, "ffn": 2048},
}


class Builder:
    def __init__(self, name):
        self.name, self.nodes, self.initializers, self.listed, self.offset = name, [], [], [], 0

    def add(self, kind, inputs, *outputs, domain="", **attributes):
        name = outputs[0] + ".n"
        self.nodes.append(
            h.make_node(kind, inputs, list(outputs), domain=domain, name=name, **attributes)
        )
        return outputs[0]

    def microsoft(self, kind, inputs, *outputs, **attributes):
        return self.add(kind, inputs, *outputs, domain="com.microsoft", **attributes)

    def constant(self, name, array):
        self.initializers.append(nh.from_array(array, name))

    def weight(self, name, kind, *shape):
        """A tensor in the file of weights; `kind` says what is drawn into it."""
        length = int(np.prod(shape)) * 4
        tensor = onnx.TensorProto(name=name, data_type=T.FLOAT, dims=shape)
        tensor.data_location = T.EXTERNAL
        places = {"location": "model.onnx_data", "offset": self.offset, "length": length}
        for key, value in places.items():
            tensor.external_data.add(key=key, value=str(value))
        self.initializers.append(tensor)
        self.listed.append({"kind": kind, "shape": shape})
        self.offset += length


def build(name, hidden, layers, heads, kv_heads, head, ffn):
    g = Builder(name)
    g.constant("one", np.array([1], np.int64))
    g.constant("second", np.array(1, np.int64))
    g.constant("zero", np.array([0], np.int64))
    g.constant("end", np.array([2**31 - 1], np.int64))
    g.weight("cos", "cos", CONTEXT, head // 2)
    g.weight("sin", "sin", CONTEXT, head // 2)
    g.weight("embed", "normal", VOCABULARY, hidden)

    g.add("ReduceSum", ["attention_mask", "one"], "mask_sum", keepdims=0)
    g.add("Cast", [g.add("Sub", ["mask_sum", "one"], "mask_less")], "seqlens", to=T.INT32)
    g.add("Shape", ["attention_mask"], "mask_shape")
    g.add("Cast", [g.add("Gather", ["mask_shape", "second"], "total64", axis=0)], "total", to=T.INT32)
    stream = g.add("Gather", ["embed", "input_ids"], "x")
    g.weight("norm", "one", hidden)
    normed = g.add("SimplifiedLayerNormalization", [stream, "norm"], "n", epsilon=EPSILON)

    def value(label, kind, *shape):
        return h.make_tensor_value_info(label, kind, shape)

    inputs = [
        value("input_ids", T.INT64, "batch_size", "sequence_length"),
        value("attention_mask", T.INT64, "batch_size", "total_sequence_length"),
        value("num_logits_to_keep", T.INT64),
    ]
    outputs = [value("logits", T.FLOAT, "batch_size", "kept", VOCABULARY)]
    for layer in range(layers):
        sizes = {"q": heads, "k": kv_heads, "v": kv_heads}
        for part, count in sizes.items():
            g.weight(f"{part}{layer}", "normal", hidden, count * head)
            g.add("MatMul", [normed, f"{part}{layer}"], f"{part}{layer}.y")
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        attended = g.microsoft(
            "GroupQueryAttention",
            [f"{part}{layer}.y" for part in sizes] + [*past, "seqlens", "total", "cos", "sin"],
            f"a{layer}",
            *present,
            num_heads=heads,
            kv_num_heads=kv_heads,
            do_rotary=1,
        )
        for names, values, length in ((past, inputs, "past"), (present, outputs, "total")):
            for label in names:
                shape = "batch_size", kv_heads, f"{length}_sequence_length", head
                values.append(value(label, T.FLOAT, *shape))
        g.weight(f"o{layer}", "normal", heads * head, hidden)
        g.add("MatMul", [attended, f"o{layer}"], f"o{layer}.y")
        g.microsoft(
            "SkipSimplifiedLayerNormalization",
            [stream, f"o{layer}.y", "norm"],
            *(f"m{layer}", "", "", f"s{layer}"),
            epsilon=EPSILON,
        )
        for part in ("gate", "up"):
            g.weight(f"{part}{layer}", "normal", hidden, ffn)
            g.add("MatMul", [f"m{layer}", f"{part}{layer}"], f"{part}{layer}.y")
        g.weight(f"down{layer}", "normal", ffn, hidden)
        silu = g.add("Mul", [f"gate{layer}.y", g.add("Sigmoid", [f"gate{layer}.y"], f"g{layer}.s")], f"g{layer}.a")
        g.add("MatMul", [g.add("Mul", [silu, f"up{layer}.y"], f"gu{layer}"), f"down{layer}"], f"d{layer}.y")
        g.microsoft(
            "SkipSimplifiedLayerNormalization",
            [f"s{layer}", f"d{layer}.y", "norm"],
            *(f"n{layer + 1}", "", "", f"x{layer + 1}"),
            epsilon=EPSILON,
        )
        stream, normed = f"x{layer + 1}", f"n{layer + 1}"
    # The last `num_logits_to_keep` positions.
    kept = g.add("Reshape", ["num_logits_to_keep", "one"], "kept_count")
    start = g.add("Sub", ["zero", kept], "keep_from")
    normed = g.add("Slice", [normed, start, "end", "one"], "kept_states")
    g.weight("head", "head", hidden, VOCABULARY)
    g.add("MatMul", [normed, "head"], "logits")

    graph = h.make_graph(g.nodes, name, inputs, outputs, g.initializers)
    opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="bench")
    (FOLDER / f"{name}.onnx").write_bytes(model.SerializeToString())
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head,
        "max_position_embeddings": CONTEXT,
        "eos_token_id": VOCABULARY - 1,
        "transformers.js_config": {"use_external_data_format": True},
    }
    listed = json.dumps({"config": config, "weights": g.listed}, indent=1)
    (FOLDER / f"{name}.json").write_text(listed + "\n")
    print(f"{name}: {g.offset / 1e6:.0f} MB of weights")


for name, size in MODELS.items():
    build(name, **size)
