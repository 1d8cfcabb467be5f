"""Prints the table of scores for the model's card, from the file that `score.py` wrote."""
import json

from places import KEPT_DIR

# Groups of questions in the order of the card, with a remark.
GROUPS = {
    'color': 'of a shape, a sign or a button', 'shape': 'by its color', 'if': 'whether a shape has a color', 'count': 'all shapes, those of a form, those of a color', 'list': 'all shapes, or all colors', 'place': 'nine places, or the half',
    'at': 'the shape at a place', 'relation': 'left, right, above, below; more or fewer', 'larger': 'of two, or of all', 'presence': 'half of them are not there', 'negative': 'questions about what is not there', 'ground': 'the color of the background',
    'caption': 'a sentence with everything in the picture', 'ink': 'the color of the text', 'words': 'a word, a code, one line, a title, the labels of buttons', 'lines': 'two to seven lines, all of them', 'number': 'a number alone', 'price': 'with its currency',
    'bars': 'how many', 'labels': 'those of all bars', 'most': 'the largest or the smallest bar', 'value': 'of a bar with a number; "The bars have no numbers" is right where there are none', 'bar pair': 'whether one bar is larger than another', 'click': 'x and y within 5 percent of the center of the only button', 'click one': 'the same, of one of several buttons', 'photo': '"I can only see simple pictures" is right; parts of 19 photographs', 'texture': 'the same, for noise, soft forms and crowds of forms', 'empty': 'a picture of one color',
}


def main():
    scores = json.loads((KEPT_DIR / 'scores.json').read_text())['scores']
    print('| group | right | of | |\n| --- | --- | --- | --- |')
    for group, remark in GROUPS.items():
        if group in scores:
            right, of = scores[group]
            print(f'| {group} | {100 * right / of:.1f} % | {of} | {remark} |')


if __name__ == '__main__':
    main()
