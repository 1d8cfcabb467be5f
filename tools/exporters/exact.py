"""Turns an exported graph into one that computes with the file's own values in 32 bits.

ONNX Runtime itself is no reference for a quantized file. At `accuracy_level` 4, which the GenAI
builder writes, its native kernels round the activations to 8 bits as well. The kernels of the browser
do not, and no two kernels of 16 bits round alike. So the reference takes the weights as the file has
them, and computes everything else in 32 bits.

A graph that computes the angles of its rope in 16 bits is an exception, as Optimum's is after a
conversion to 16 bits: far into a prompt, it rounds them by up to a radian. It would be another model
in 32 bits, so it keeps its types, in which the native kernels round as those of the browser do.
"""

import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT

# Inputs of GroupQueryAttention with the weights of norms, which only kernels for a GPU have.
QUERY_NORM, KEY_NORM = 14, 15

# Attributes of which the result depends on the kernel or the size of the cache, not on the weights.
DROPPED = {"MatMulNBits": ["accuracy_level"], "GroupQueryAttention": ["sliding_window_cache"]}


def load_exact(path):
    """Returns the model, with its weights inside, and the name of what it computes."""
    model = onnx.load(path)
    is_half = any(tensor.data_type == HALF for tensor in model.graph.initializer)
    if is_half and any(node.op_type == "Cos" for node in model.graph.node):
        for node in model.graph.node:
            drop_attributes(node, DROPPED.get(node.op_type, []))
        return model, "the file in 16 bits"
    convert_graph(model.graph)
    return model, "the file in 32 bits"


def convert_graph(graph):
    for tensor in graph.initializer:
        convert_tensor(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        kind = value.type.tensor_type
        if kind.elem_type == HALF:
            kind.elem_type = FLOAT
    nodes = [part for node in graph.node for part in convert_node(node)]
    del graph.node[:]
    graph.node.extend(nodes)


def convert_tensor(tensor):
    if tensor.data_type == HALF:
        values = numpy_helper.to_array(tensor).astype("float32")
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def convert_node(node):
    """Converts a node in place. Returns it after the nodes that it now needs."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            convert_tensor(attribute.t)
        elif attribute.type == AttributeProto.GRAPH:
            convert_graph(attribute.g)
        elif attribute.name in ("to", "dtype") and attribute.i == HALF:
            attribute.i = FLOAT
    drop_attributes(node, DROPPED.get(node.op_type, []))
    return [*split_norms(node), node] if node.op_type == "GroupQueryAttention" else [node]


def drop_attributes(node, names):
    kept = [attribute for attribute in node.attribute if attribute.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def split_norms(attention):
    """Returns nodes that norm queries and keys, which the attention no longer does itself."""
    if len(attention.input) <= KEY_NORM or not attention.input[QUERY_NORM]:
        return []
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in attention.attribute}
    nodes = []
    sides = [(0, QUERY_NORM, given["num_heads"]), (1, KEY_NORM, given["kv_num_heads"])]
    for at, norm, heads in sides:
        name, source, weight = f"{attention.name}/norm.{at}", attention.input[at], attention.input[norm]
        apart, together = (
            helper.make_node("Constant", [], [f"{name}/{part}"], value_ints=sizes)
            for part, sizes in (("apart", [0, 0, heads, -1]), ("together", [0, 0, -1]))
        )
        nodes += [
            apart,
            together,
            helper.make_node("Reshape", [source, *apart.output], [f"{name}/heads"]),
            helper.make_node(
                "SimplifiedLayerNormalization",
                [f"{name}/heads", weight],
                [f"{name}/normed"],
                epsilon=given["qk_norm_epsilon"],
                axis=-1,
                stash_type=1,
            ),
            helper.make_node("Reshape", [f"{name}/normed", *together.output], [name]),
        ]
        attention.input[at] = name
        attention.input[norm] = ""
    drop_attributes(attention, ["qk_norm_epsilon"])
    return nodes
