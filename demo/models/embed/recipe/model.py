"""The embedder: learnt vectors of tokens, one look at their neighbours, and a weighed mean."""
import torch
from torch import nn

SIZE, WIDTH, REACH = 128, 256, 5


class Embedder(nn.Module):
    def __init__(self, tokens: int):
        super().__init__()
        self.table = nn.Embedding(tokens, SIZE)
        self.table.weight.data.normal_(0, 0.1)
        self.weigh = nn.Embedding(tokens, 1)
        self.weigh.weight.data.zero_()
        self.norm = nn.LayerNorm(SIZE)
        # Each channel looks at the tokens around on its own; channels then meet in two matrices.
        self.around = nn.Conv1d(SIZE, SIZE, REACH, padding=REACH // 2, groups=SIZE)
        self.wide = nn.Linear(SIZE, WIDTH)
        self.narrow = nn.Linear(WIDTH, SIZE)
        self.narrow.weight.data.zero_()
        self.narrow.bias.data.zero_()
        self.matter = nn.Linear(SIZE, 1)
        self.matter.weight.data.zero_()
        # Whether context is looked at yet: without it, training is many times quicker.
        self.context = True

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors (n, SIZE) of tokens (n, length), 0 where `mask` is 0."""
        here = mask.unsqueeze(-1).to(self.table.weight.dtype)
        read = self.table(ids)
        if self.context:
            seen = self.around((self.norm(read) * here).transpose(1, 2)).transpose(1, 2)
            read = read + self.narrow(torch.relu(self.wide(seen)))
        weight = torch.sigmoid(self.weigh(ids) + self.matter(read)) * here
        whole = (read * weight).sum(1)
        return whole / (whole.pow(2).sum(1, keepdim=True) + 1e-12).sqrt()
