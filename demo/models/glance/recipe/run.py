"""The whole recipe in one command: training of the letters, training of the whole model, scores, export, comparison with ONNX Runtime.

python3 run.py            begins anew; writes the model's files to the folder above
python3 run.py --resume   goes on where it was cut
python3 run.py --quick    a few steps, into the work folder; the model loads, but sees nothing
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

from places import HERE, KEPT_DIR, OUT_DIR


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true')
    args.add_argument('--resume', action='store_true')
    args = args.parse_args()
    env = dict(os.environ)
    if args.quick:
        env |= {'GLANCE_WORK': str(KEPT_DIR / 'quick'), 'GLANCE_OUT': env.get('GLANCE_OUT', str(KEPT_DIR / 'quick' / 'model'))}
    Path(env.get('GLANCE_OUT', OUT_DIR)).mkdir(parents=True, exist_ok=True)

    def step(*command, **more):
        print('>', *command, flush=True)
        subprocess.run([sys.executable, *command], cwd=HERE, env=env | more, check=True)

    def learn(options: list, long: str, quick: str, **more):
        step('learn.py', *([] if args.resume else ['--fresh']), *options, *(quick if args.quick else long).split(), **more)

    # The letters come first. A model that learnt everything at once did not learn to read.
    letters = str(Path(env.get('GLANCE_WORK', KEPT_DIR)) / 'letters')
    learn('--parts letters --talk 0 --pictures 16 --rate 2e-3'.split(), '--minutes 90', '--steps 8 --every 1', GLANCE_WORK=letters)
    learn(['--from', letters], '--pages 10 --minutes 600', '--steps 8 --pictures 8 --pages 4 --every 1')
    step('score.py', *(['--count', '4'] if args.quick else []))
    step('score_talk.py', *('--count 2 --sample 1'.split() if args.quick else []))
    step('ship.py')
    step('agree.py')


if __name__ == '__main__':
    main()
