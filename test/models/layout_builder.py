"""Nodes and constants of a graph, collected one after the other."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from layout_weights import BLOCK, EPSILON


class Builder:
    """Nodes and constants of a graph."""

    def __init__(self, constants, kind):
        self.nodes, self.constants, self.kind = [], dict(constants), kind

    def add(self, operator, inputs, *outputs, domain="", **attributes):
        outputs = outputs or (f"t{len(self.nodes)}",)
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(
            h.make_node(operator, inputs, list(outputs), domain=domain, name=name, **attributes)
        )
        return outputs[0]

    def microsoft(self, operator, inputs, *outputs, **attributes):
        return self.add(operator, inputs, *outputs, domain="com.microsoft", **attributes)

    def ints(self, *values):
        name = "i" + "_".join(map(str, values)).replace("-", "m")
        self.constants[name] = np.array(values, np.int64)
        return name

    def number(self, value):
        name = f"f{value}".replace("-", "m").replace(".", "p")
        self.constants[name] = np.array(value, np.float16 if self.kind == T.FLOAT16 else np.float32)
        return name

    def linear(self, x, weight):
        if f"{weight}.packed" not in self.constants:
            return self.add("MatMul", [x, weight])
        count = self.constants[f"{weight}.packed"].shape[0]
        size = self.constants[f"{weight}.packed"].shape[1] * BLOCK
        inputs = [x, f"{weight}.packed", f"{weight}.scales"]
        sizes = {"K": size, "N": count, "bits": 4, "block_size": BLOCK}
        return self.microsoft("MatMulNBits", inputs, **sizes)

    def norm(self, x, scale):
        return self.add("SimplifiedLayerNormalization", [x, scale], epsilon=EPSILON)

    def graph(self, name, inputs, outputs):
        initializers = [nh.from_array(array, key) for key, array in self.constants.items()]
        graph = h.make_graph(self.nodes, name, inputs, outputs, initializers)
        opsets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
        return h.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="layouts")


def value(name, kind, *shape):
    return h.make_tensor_value_info(name, kind, shape)


def scalar(b, number):
    b.constants[f"s{number}"] = np.array(number, np.int64)
    return f"s{number}"
