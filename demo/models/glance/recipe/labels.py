"""The names of what the auxiliary loss finds in a cell of a picture."""
SHAPES = ['circle', 'square', 'triangle', 'star', 'diamond', 'heart', 'cross', 'hexagon', 'rectangle', 'oval']
COLORS = {'red': (214, 39, 40), 'green': (34, 150, 60), 'blue': (30, 80, 220), 'yellow': (245, 215, 30), 'orange': (250, 140, 20), 'purple': (130, 50, 170),
          'pink': (245, 130, 190), 'brown': (130, 80, 40), 'black': (15, 15, 15), 'white': (250, 250, 250), 'gray': (128, 128, 128), 'cyan': (20, 195, 215)}
# Other shades of the same names, as style sheets, plotting libraries and drawing programs have them.
SHADES = {'red': ['ff0000', 'e74c3c', 'ef4444', 'd62728', 'cc0000', 'b91c1c', 'dc143c'], 'green': ['008000', '00ff00', '2ecc71', '22c55e', '2ca02c', '32cd32', '16a34a', '006400', '4caf50'],
          'blue': ['0000ff', '3498db', '3b82f6', '1f77b4', '1e90ff', '2563eb', '4169e1', '000080', '0066cc'], 'yellow': ['ffff00', 'f1c40f', 'fde047', 'ffd700', 'facc15', 'ffeb3b'],
          'orange': ['ffa500', 'e67e22', 'f97316', 'ff7f0e', 'ff8c00', 'ff9800'], 'purple': ['800080', '9b59b6', 'a855f7', '9467bd', '8a2be2', '6a0dad', '9333ea'],
          'pink': ['ffc0cb', 'ff69b4', 'ec4899', 'e377c2', 'ff99cc', 'f9a8d4'], 'brown': ['8b4513', 'a0522d', '8c564b', '795548', '7b3f00', '654321'], 'black': ['000000', '111827', '222222'],
          'white': ['ffffff', 'f8f8f8', 'fafafa'], 'gray': ['808080', '7f7f7f', '6b7280', 'a9a9a9', '999999', 'c0c0c0'], 'cyan': ['00ffff', '06b6d4', '17becf', '00bcd4', '22d3ee']}
LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789$€£.,:%-+!?\''
PARTS = ['bar', 'button', 'sign', 'dialog', 'texture', 'largest bar', 'smallest bar']
LABELS = SHAPES + list(COLORS) + list(LETTERS) + PARTS
INDEX = {name: at for at, name in enumerate(LABELS)}
