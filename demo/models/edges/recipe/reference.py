"""What the graph must compute, in numpy."""
import numpy as np

# Each pair looks across and down; both are scaled so that a step from black to white gives 1.
ACROSS = {
    'sobel': np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 4,
    'scharr': np.array([[-3, 0, 3], [-10, 0, 10], [-3, 0, 3]]) / 16,
    'prewitt': np.array([[-1, 0, 1], [-1, 0, 1], [-1, 0, 1]]) / 3,
}
LAPLACIAN = np.array([[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]]) / 3
MODES = ['sobel', 'scharr', 'prewitt', 'laplacian', 'outline', 'kernel']
WEIGHTS = {'red': 0.299, 'green': 0.587, 'blue': 0.114}
KERNEL = [[0, -1, 0], [-1, 4, -1], [0, -1, 0]]


def pair(mode: str, kernel: np.ndarray) -> np.ndarray:
    """Two kernels; the second of those that have no direction is zero."""
    if mode in ('laplacian', 'kernel'):
        one = LAPLACIAN if mode == 'laplacian' else kernel
        return np.stack([one, np.zeros((3, 3))])
    across = ACROSS['sobel' if mode == 'outline' else mode]
    return np.stack([across, across.T])


def edges(image: np.ndarray, strength=1.0, mode='sobel', invert=False, weights=WEIGHTS,
          kernel=KERNEL) -> np.ndarray:
    """Pixels (height, width, 3) from 0 to 1 in, the like out."""
    height, width, _ = image.shape
    grey = image @ np.array([weights[name] for name in WEIGHTS])
    padded = np.pad(grey, 1, mode='edge')
    kernels = pair(mode, np.asarray(kernel, float))
    found = np.zeros((2, height, width))
    for row in range(3):
        for column in range(3):
            part = padded[row:row + height, column:column + width]
            found += kernels[:, row, column, None, None] * part
    line = np.clip(np.sqrt((found ** 2).sum(0)) * strength, 0, 1)[..., None]
    paper = image if mode == 'outline' else np.full_like(image, float(invert))
    return paper + (1 - float(invert) - paper) * line
