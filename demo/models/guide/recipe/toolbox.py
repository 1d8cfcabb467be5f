"""The tools of one chat."""
from families import spoken
from tools import everyday, invented
from values import Draw


def toolbox(d: Draw) -> list:
    """One to four tools of different names and subjects, sometimes confusingly alike."""
    out = []
    wanted = d.rng.choices([1, 2, 3, 4], [25, 30, 25, 20])[0]
    share = d.one([0.0, 0.5, 0.5, 1.0])
    while len(out) < wanted:
        tool = everyday(d) if d.chance(share) else spoken(d) if d.chance(0.5) else invented(d, d.one(out) if out and d.chance(0.35) else None)
        if all(tool.name != t.name and (tool.subject, tool.verbs) != (t.subject, t.verbs) for t in out):
            out.append(tool)
    return out
