"""The embedder: learnt vectors of tokens, one look at their neighbours, and a weighed mean."""
import torch
from torch import nn
from torch.nn.functional import embedding_bag, pad

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

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors (n, SIZE) of tokens (n, length), 0 where `mask` is 0."""
        here = mask.unsqueeze(-1).to(self.table.weight.dtype)
        read = self.table(ids)
        seen = self.around((self.norm(read) * here).transpose(1, 2)).transpose(1, 2)
        read = read + self.narrow(torch.relu(self.wide(seen)))
        weight = torch.sigmoid(self.weigh(ids) + self.matter(read)) * here
        return unit((read * weight).sum(1))

    def bags(self, ids: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """The same without a look at neighbours, of texts end to end that begin at `starts`: many times quicker."""
        share = torch.sigmoid(self.weigh.weight + self.matter(self.table.weight))
        return unit(embedding_bag(ids, self.table.weight * share, starts, mode='sum'))

    def strung(self, ids: torch.Tensor, texts: torch.Tensor, count: int) -> torch.Tensor:
        """The same as `forward`, of texts end to end, with REACH // 2 tokens of no text (`count`) behind each."""
        here = (texts < count).unsqueeze(-1).to(self.table.weight.dtype)
        read = self.table(ids)
        even = pad(self.norm(read) * here, (0, 0, REACH // 2, REACH // 2))
        seen = sum(even[at:at + len(ids)] * self.around.weight[:, 0, at] for at in range(REACH)) + self.around.bias
        read = read + self.narrow(torch.relu(self.wide(seen)))
        weight = torch.sigmoid(self.weigh(ids) + self.matter(read))
        return unit(torch.zeros(count + 1, SIZE).index_add(0, texts, read * weight)[:count])


def unit(rows: torch.Tensor) -> torch.Tensor:
    return rows / (rows.pow(2).sum(1, keepdim=True) + 1e-12).sqrt()
