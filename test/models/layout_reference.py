"""What the layouts compute, in numpy."""

import numpy as np

from layout_weights import BRANCHES, DECAY, EPSILON, EXTRA, HEAD, HEADS, HIDDEN, LAYOUTS, MEMORY, TAPS


def forward(name, made, ids):
    """Scores of every position, in double precision."""
    length = len(ids)

    def norm(x, scale):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale

    def rotate(x):
        if name in BRANCHES:
            return x
        cos, sin = made["cos"][:length, None], made["sin"][:length, None]
        a, b = x[..., : HEAD // 2], x[..., HEAD // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(n, layer):
        q, k, v = ((n @ made[f"{part}{layer}"]).reshape(length, -1, HEAD) for part in "qkv")
        q, k = rotate(q), rotate(k)
        k, v = (np.repeat(each, HEADS // each.shape[1], 1) for each in (k, v))
        causal = np.tril(np.ones((length, length)))[None] > 0
        scores = np.where(causal, np.einsum("shd,thd->hst", q, k) / np.sqrt(HEAD), -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("hst,thd->shd", scores / scores.sum(-1, keepdims=True), v).reshape(length, -1)

    def convolution(n, layer):
        b, c, x = np.split(n @ made[f"in{layer}"], 3, -1)
        padded = np.concatenate([np.zeros((TAPS - 1, HIDDEN)), b * x])
        taps = made[f"taps{layer}"][:, 0]
        return c * sum(padded[tap : tap + length] * taps[:, tap] for tap in range(TAPS))

    def recurrence(n, layer):
        q, k, v = (n @ made[f"{part}{layer}"] for part in "qkv")
        state, out = np.zeros((MEMORY, MEMORY)), []
        for token in range(length):
            state = state * DECAY + np.outer(k[token], v[token])
            out.append(q[token] @ state)
        return np.array(out)

    mixers = {"conv": convolution, "recurrent": recurrence}
    stream = made["embed"][np.array(ids)]
    if name in BRANCHES:
        stream = stream + made["places"][1 : length + 1]
    for layer, sort in enumerate(LAYOUTS[name]["layers"]):
        mixed = mixers.get(sort, attention)(norm(stream, made[f"before{layer}"]), layer)
        stream = stream + mixed @ made[f"o{layer}"]
        if name == "split":
            extra = made["extra"][np.array(ids)].reshape(length, 2, EXTRA)[:, layer]
            stream = stream + extra @ made[f"mix{layer}"]
        m = norm(stream, made[f"between{layer}"])
        gate = m @ made[f"gate{layer}"]
        stream = stream + (gate / (1 + np.exp(-gate)) * (m @ made[f"up{layer}"])) @ made[f"down{layer}"]
    return norm(stream, made["norm"]) @ made["head"]
