"""The names of what the auxiliary loss finds in a cell of a picture."""
SHAPES = ['circle', 'square', 'triangle', 'star', 'diamond', 'heart', 'cross', 'hexagon', 'rectangle', 'oval']
COLORS = {'red': (214, 39, 40), 'green': (34, 150, 60), 'blue': (30, 80, 220), 'yellow': (245, 215, 30), 'orange': (250, 140, 20), 'purple': (130, 50, 170),
          'pink': (245, 130, 190), 'brown': (130, 80, 40), 'black': (15, 15, 15), 'white': (250, 250, 250), 'gray': (128, 128, 128)}
LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789$.,:%-!?'
PARTS = ['bar', 'button', 'sign', 'dialog', 'texture']
LABELS = SHAPES + list(COLORS) + list(LETTERS) + PARTS
INDEX = {name: at for at, name in enumerate(LABELS)}
