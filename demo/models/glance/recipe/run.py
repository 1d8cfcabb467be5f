"""The whole recipe in one command: training, scores, export, comparison with ONNX Runtime.

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

    def step(*command):
        print('>', *command, flush=True)
        subprocess.run([sys.executable, *command], cwd=HERE, env=env, check=True)

    step('learn.py', *([] if args.resume else ['--fresh']), *('--steps 12 --pictures 8 --every 1'.split() if args.quick else '--minutes 600'.split()))
    step('score.py', *(['--count', '4'] if args.quick else []))
    step('score_talk.py', *('--count 2 --sample 1'.split() if args.quick else []))
    step('ship.py')
    step('agree.py')


if __name__ == '__main__':
    main()
